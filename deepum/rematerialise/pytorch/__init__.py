"""Rematerialisation of PyTorch's tensors, on CPUs and GPUs, in eager mode."""
