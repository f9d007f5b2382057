"""On the path of programs that tests start: gives autograd time to end.

A PyTorch script that ends right after a backward() may abort at its very end, which is PyTorch's
own (docs/simulated-gpu.md): a worker of autograd still drops a Python object while the interpreter
ends.
"""

import atexit
import sys
import time


@atexit.register
def let_autograd_end() -> None:
    """Runs before the interpreter begins to end; other threads may have the lock meanwhile."""
    if "torch" in sys.modules:
        time.sleep(0.2)
