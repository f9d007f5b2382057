"""A CUDA driver program by ctypes, for snippets that the tests run under the shim."""

from __future__ import annotations

import ctypes as c
import json
import threading  # for the snippets
from typing import Any

__all__ = [
    "MiB",
    "c",
    "cuda",
    "free",
    "mem_info",
    "start",
    "tell",
    "threading",
    "try_alloc",
    "try_alloc_async",
    "try_managed",
]
cuda: Any = c.CDLL("libcuda.so.1")
MiB = 1 << 20


def ok(result: int) -> None:
    assert result == 0, f"CUresult {result}"


def start(device: int = 0) -> c.c_void_p:
    context = c.c_void_p()
    ok(cuda.cuInit(0))
    ok(cuda.cuDevicePrimaryCtxRetain(c.byref(context), device))
    ok(cuda.cuCtxSetCurrent(context))
    return context


def try_alloc(size: int) -> tuple[int, int]:
    address = c.c_uint64()
    return cuda.cuMemAlloc_v2(c.byref(address), c.c_size_t(size)), address.value


def try_managed(size: int) -> tuple[int, int]:
    address = c.c_uint64()
    return cuda.cuMemAllocManaged(c.byref(address), c.c_size_t(size), 1), address.value


def try_alloc_async(size: int) -> tuple[int, int]:
    address = c.c_uint64()
    return cuda.cuMemAllocAsync(c.byref(address), c.c_size_t(size), None), address.value


def free(address: int) -> None:
    ok(cuda.cuMemFree_v2(c.c_uint64(address)))


def mem_info() -> list[int]:
    left, total = c.c_size_t(), c.c_size_t()
    ok(cuda.cuMemGetInfo_v2(c.byref(left), c.byref(total)))
    return [left.value, total.value]


def tell(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)
