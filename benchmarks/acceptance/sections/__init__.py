"""What the acceptance consists of, one a file: `run(place, keep, deadline)` keeps what it knows as
it goes.
"""
