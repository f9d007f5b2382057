"""Capture: what a PyTorch program would launch on a GPU, written down on a machine that has none.

Tensors of the captured program live on PyTorch's device "meta": they have sizes, strides and
storages, and no memory; each operator runs its shape function, the one that FakeTensor runs. It is
used without FakeTensorMode around it, because fake tensors that say "cuda" need the device guard of
a CUDA build with a GPU as soon as autograd runs, and fake tensors that say "cpu" cannot be told
from those that a training loop keeps on the host in truth (an optimizer's step counters, indices
made by a data loader). Here the two are told apart by their device: "meta" is the GPU, what is on
the CPU is real.
"""
