"""`deepum doctor`: what a machine offers and what stands in the way, one idea a file.
docs/doctor.md lists the checks.
"""
