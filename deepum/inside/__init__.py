"""What a program asks of deepum while it runs: its figures, another budget, hints about tensors.

`own_session` finds the daemon's session of this process, `steps` makes figures of what happened
between two looks at it, `hints` gives advice to the driver. Without deepum all of it does nothing,
and one warning says so.
"""
