"""What the scripts run by these tests begin with: the driver through cuda-bindings, checked calls,
a context, the host module.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from cuda.bindings import driver as d

F = np.float32
CPU = d.CUmemLocation()
CPU.type = d.CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST
GPU = d.CUmemLocation()
GPU.type = d.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
GPU.id = 0
MIB = 1 << 20


def ck(answer: Any) -> Any:
    """The values of a call that has to succeed."""
    assert answer[0] == 0, (answer[0], d.cuGetErrorString(answer[0])[1])
    return None if len(answer) == 1 else answer[1] if len(answer) == 2 else answer[1:]


def error(answer: Any) -> str:
    """The name of a call's error."""
    return str(d.CUresult(answer[0]).name).removeprefix("CUDA_ERROR_")


def context() -> Any:
    ck(d.cuInit(0))
    made = ck(d.cuDevicePrimaryCtxRetain(ck(d.cuDeviceGet(0))))
    ck(d.cuCtxSetCurrent(made))
    return made


class Module:
    """The host module of tests/programs/sim_module.c; module.scale(stream, p, n, 2.0) launches a
    kernel.
    """

    TYPES: ClassVar[dict[str, tuple[Any, ...]]] = {
        "scale": (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_float),
        "add": (ctypes.c_uint64,) * 4,
        "set": (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_float),
        "slow": (ctypes.c_uint64,),
        "shape": (ctypes.c_uint64,),
        "read_anything": (ctypes.c_uint64, ctypes.c_uint64),
        "unknown": (ctypes.c_uint64,),
    }

    def __init__(self) -> None:
        self.handle = ck(d.cuModuleLoad(os.environ["SIM_MODULE"].encode()))
        self.functions = {
            name: ck(d.cuModuleGetFunction(self.handle, name.encode())) for name in self.TYPES
        }

    def values(self, name: str, *values: Any) -> Any:
        return tuple(
            float(v) if t is ctypes.c_float else int(v)
            for v, t in zip(values, self.TYPES[name], strict=True)
        ), self.TYPES[name]

    def __getattr__(self, name: str) -> Any:
        def launch(stream: Any, *values: Any) -> Any:
            return d.cuLaunchKernel(
                self.functions[name], 1, 1, 1, 1, 1, 1, 0, stream, self.values(name, *values), 0
            )

        return launch


class Gate:
    """Holds streams up until it is opened: they wait for a word in pinned memory."""

    def __init__(self) -> None:
        self.address = ck(d.cuMemHostAlloc(8, 0))
        self.word = ctypes.c_uint32.from_address(self.address)
        self.word.value = 0

    def hold(self, stream: Any) -> None:
        ck(
            d.cuStreamWaitValue32(
                stream, self.address, 1, d.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ.value
            )
        )

    def open(self) -> None:
        self.word.value = 1


def managed(count: int) -> Any:
    return ck(d.cuMemAllocManaged(4 * count, d.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL.value))


def device(count: int) -> Any:
    return ck(d.cuMemAlloc(4 * count))


def put(pointer: Any, values: Any) -> None:
    array = np.ascontiguousarray(values, dtype=F)
    ck(d.cuMemcpyHtoD(pointer, array.ctypes.data, array.nbytes))


def get(pointer: Any, count: int) -> Any:
    array = np.empty(count, dtype=F)
    ck(d.cuMemcpyDtoH(array.ctypes.data, pointer, array.nbytes))
    return array


def stream(flags: int = 1) -> Any:
    """Non-blocking unless told otherwise."""
    return ck(d.cuStreamCreate(flags))


def resident_bytes() -> int:
    """What this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
