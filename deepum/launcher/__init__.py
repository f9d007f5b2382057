"""`deepum run`: the program under the shim, from what is given to the exit code."""
