"""Questions to a driver, one a file: `answer(bench)` tells what was seen, as values for JSON. None
asks for more than the card has.

Sizes are bytes, rates 10^9 bytes a second, times what their names end in; `host` is the CPU time of
a call, by this process's clock.
"""
