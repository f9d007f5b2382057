"""PyTorch's operators declare to the shim what the kernels that they launch only read, in a program
under `deepum run --tune advice=all,writes=operators` (docs/declared-reads.md).
"""
