"""How fast the link is, both ways: a copy of pinned memory, a prefetch, and access on demand."""

from __future__ import annotations

import ctypes
import time
from typing import Any

from deepum.doctor.driver import MIB, Cuda

_ROUNDS = 3  # the best of them counts: the first has the driver's own preparations in it
_MOST_BYTES = 256 * MIB


def measure(cuda: Cuda, simulated: bool) -> dict[str, Any]:
    """Rates in 10^9 bytes a second, of memory that is `bytes` long. Raises CudaError, UnsafeError.

    `to_host_on_demand` is by the CPU's own accesses, in real time: null on the simulated GPU, whose
    CPU side has no faults.
    """
    size = min(_MOST_BYTES, cuda.free_bytes() // 8 // (2 * MIB) * (2 * MIB))
    stream = cuda.stream()
    device, pinned, managed = int(cuda("cuMemAlloc", size)), cuda.pinned(size), cuda.managed(size)
    # By the GPU, so that the pages have content where they are moved from.
    cuda("cuMemsetD8Async", managed, 1, size, stream)
    # The kernel is compiled and loaded now, not while time is taken.
    cuda.touch("read", device, size // 4, stream)
    cuda("cuStreamSynchronize", stream)
    best: dict[str, float] = {}

    def note(name: str, milliseconds: float) -> None:
        best[name] = max(best.get(name, 0.0), size / 1e6 / max(milliseconds, 1e-6))

    for _ in range(_ROUNDS):
        note(
            "to_gpu_pinned",
            cuda.milliseconds(
                stream, lambda: cuda("cuMemcpyHtoDAsync", device, pinned, size, stream)
            ),
        )
        note(
            "to_host_pinned",
            cuda.milliseconds(
                stream, lambda: cuda("cuMemcpyDtoHAsync", pinned, device, size, stream)
            ),
        )
        note(
            "to_host_prefetch",
            cuda.milliseconds(stream, lambda: cuda.prefetch(managed, size, cuda.host, stream)),
        )
        note(
            "to_gpu_prefetch",
            cuda.milliseconds(stream, lambda: cuda.prefetch(managed, size, cuda.gpu, stream)),
        )
        cuda.prefetch(managed, size, cuda.host, stream)
        note(
            "to_gpu_on_demand",
            cuda.milliseconds(stream, lambda: cuda.touch("read", managed, size // 4, stream)),
        )
        if not simulated:
            note("to_host_on_demand", _touch_by_cpu(managed, size))
            cuda.prefetch(managed, size, cuda.gpu, stream)
            cuda("cuStreamSynchronize", stream)
    cuda.free(managed)
    cuda("cuMemFree", device)
    cuda("cuMemFreeHost", pinned)
    return {
        "bytes": size,
        "to_host_on_demand": None,
        **{name: round(rate, 3) for name, rate in best.items()},
    }


def _touch_by_cpu(address: int, size: int) -> float:
    """Milliseconds that the CPU takes to read a byte of each page, from the GPU."""
    copy = ctypes.create_string_buffer(size)
    begin = time.perf_counter()
    ctypes.memmove(copy, address, size)
    migrating = time.perf_counter() - begin
    begin = time.perf_counter()
    ctypes.memmove(copy, address, size)  # the same from the CPU's own memory
    return (migrating - (time.perf_counter() - begin)) * 1e3
