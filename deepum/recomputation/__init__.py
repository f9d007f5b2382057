"""Recomputation over traces: memory is given back early and computed again before its next use, as
dynamic tensor rematerialisation does it (Kirisame et al., ICLR'21), and the program's trace becomes
that of the same program with more launches and less memory (docs/recomputation.md).
"""
