"""Watching and steering a daemon from outside: `channel` asks it, `rates` makes rates of two looks
at its figures, `table` has what of them fits a line.
"""
