"""A small CUDA driver program by ctypes, for snippets that the tests run in a process of their own
under the shim.
"""

from __future__ import annotations

import ctypes as c
import json
from typing import Any

cuda: Any = c.CDLL("libcuda.so.1")
MiB = 1 << 20


def ok(result: int) -> None:
    assert result == 0, f"CUresult {result}"


def name_called() -> str:
    """The driver function that was reached last."""
    cuda.fake_called.restype = c.c_char_p
    return str(cuda.fake_called().decode())


def start(device: int = 0) -> c.c_void_p:
    context = c.c_void_p()
    ok(cuda.cuInit(0))
    ok(cuda.cuDevicePrimaryCtxRetain(c.byref(context), device))
    ok(cuda.cuCtxSetCurrent(context))
    return context


def try_alloc(size: int) -> tuple[int, int]:
    address = c.c_uint64()
    result = cuda.cuMemAlloc_v2(c.byref(address), c.c_size_t(size))
    return result, address.value


def alloc(size: int) -> int:
    result, address = try_alloc(size)
    ok(result)
    return address


def managed(size: int) -> int:
    address = c.c_uint64()
    ok(cuda.cuMemAllocManaged(c.byref(address), c.c_size_t(size), 1))
    return address.value


def free(address: int) -> None:
    ok(cuda.cuMemFree_v2(c.c_uint64(address)))


def mem_info() -> tuple[int, int]:
    left, total = c.c_size_t(), c.c_size_t()
    ok(cuda.cuMemGetInfo_v2(c.byref(left), c.byref(total)))
    return left.value, total.value


def module() -> c.c_void_p:
    loaded = c.c_void_p()
    ok(cuda.cuModuleLoadData(c.byref(loaded), b""))
    return loaded


def function(name: str) -> c.c_void_p:
    """The fake driver's functions carry their parameter sizes: "add:8,8,4"."""
    found = c.c_void_p()
    ok(cuda.cuModuleGetFunction(c.byref(found), module(), name.encode()))
    return found


def pointers(*values: Any) -> Any:
    boxes = [
        v if isinstance(v, c.Structure | c.Array | c._SimpleCData) else c.c_uint64(v)
        for v in values
    ]
    array: Any = (c.c_void_p * max(1, len(boxes)))(*[c.addressof(box) for box in boxes])
    array.keep = boxes
    return array


def launch(
    kernel: c.c_void_p,
    *values: Any,
    grid: int = 1,
    block: int = 32,
    shared: int = 0,
    stream: Any = None,
    suffix: str = "",
) -> None:
    arguments = pointers(*values)
    entry = getattr(cuda, "cuLaunchKernel" + suffix)
    ok(entry(kernel, grid, 1, 1, block, 1, 1, shared, stream, arguments, None))


def stream_create(flags: int = 1) -> c.c_void_p:
    created = c.c_void_p()
    ok(cuda.cuStreamCreate(c.byref(created), flags))
    return created


def tell(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)
