"""A program of the driver API with kernels that are executed: arrays that are filled, doubled again
and again, and checked.
"""

from __future__ import annotations

from typing import Any

from cuda.bindings import driver as d
from sim_prelude import MIB, Module, ck, device, get, stream

__all__ = [
    "COUNT",
    "MIB",
    "ROUNDS",
    "Arrays",
    "Module",
    "ck",
    "context_of",
    "d",
    "device",
    "get",
    "graph_kernel",
    "stream",
]
COUNT = 20 * MIB // 4  # floats of an array: ten UM blocks
ROUNDS = 8


def context_of(ordinal: int) -> Any:
    """Makes the device's primary context current."""
    ck(d.cuInit(0))
    context = ck(d.cuDevicePrimaryCtxRetain(ck(d.cuDeviceGet(ordinal))))
    ck(d.cuCtxSetCurrent(context))
    return context


class Arrays:
    """Arrays on the current device; number k holds first + k in each place."""

    def __init__(self, number: int, first: int = 0) -> None:
        self.context = ck(d.cuCtxGetCurrent())
        self.module, self.stream, self.first = Module(), stream(), first
        self.at = [device(COUNT) for _ in range(number)]
        for k, pointer in enumerate(self.at):
            ck(self.module.set(self.stream, pointer, COUNT, first + k))

    def double(self, k: int, stream: Any = None) -> None:
        """Launches a kernel that doubles array k."""
        ck(self.module.scale(self.stream if stream is None else stream, self.at[k], COUNT, 2.0))

    def wait(self) -> None:
        """Makes the context current, and waits for the stream."""
        ck(d.cuCtxSetCurrent(self.context))
        ck(d.cuStreamSynchronize(self.stream))

    def check(self, doubled: int) -> None:
        """Each element of each array, after so many kernels on each."""
        ck(d.cuCtxSetCurrent(self.context))
        for k, pointer in enumerate(self.at):
            assert (get(pointer, COUNT) == (self.first + k) * 2.0**doubled).all(), f"array {k}"


def graph_kernel(module: Module, name: str, *values: Any) -> Any:
    """The parameters of a graph's kernel node."""
    node = d.CUDA_KERNEL_NODE_PARAMS()
    node.func = module.functions[name]
    node.gridDimX = node.gridDimY = node.gridDimZ = node.blockDimX = node.blockDimY = (
        node.blockDimZ
    ) = 1
    node.kernelParams = module.values(name, *values)
    return node
