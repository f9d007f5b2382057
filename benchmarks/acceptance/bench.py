"""What the questions work with: kernels, gates that hold streams back, batches, clocks, and what is
free of the card.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from deepum.doctor.driver import MIB, Cuda

BLOCK = 2 * MIB


class Gate:
    """Holds streams up until it is opened: they wait for a word in pinned memory."""

    def __init__(self, cuda: Cuda) -> None:
        self.cuda = cuda
        self.address = cuda.pinned(8)
        self.word = ctypes.c_uint32.from_address(self.address)
        self.word.value = 0

    def hold(self, stream: Any) -> None:
        """What is queued on the stream from here on waits."""
        self.cuda(
            "cuStreamWaitValue32",
            stream,
            self.address,
            1,
            self.cuda.api.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ.value,
        )

    def open(self) -> None:
        """All go on."""
        self.word.value = 1

    def open_after(self, seconds: float) -> threading.Timer:
        """From another thread, so that a call that blocks comes back."""
        timer = threading.Timer(seconds, self.open)
        timer.start()
        return timer


class Bench:
    """A driver with helpers. `simulated`: what only a real GPU can answer is left out, and host
    times mean nothing.
    """

    def __init__(self, cuda: Cuda, simulated: bool, short: bool) -> None:
        self.cuda = cuda
        self.simulated = simulated
        self.short = short
        self.stream = cuda.stream()

    def whole(self, most: int) -> int:
        """So many bytes at most, in whole blocks, and no more than an eighth of what is free."""
        return max(
            BLOCK,
            min(most if not self.short else min(most, 16 * MIB), self.cuda.free_bytes() // 8)
            // BLOCK
            * BLOCK,
        )

    def launch(
        self, name: str, address: int, count: int, stride: int = 4, stream: Any = None
    ) -> None:
        """read, write or add, by `count` threads."""
        self.cuda.touch(name, address, count, self.stream if stream is None else stream, stride)

    def sweep(self, name: str, address: int, size: int, stream: Any = None) -> None:
        """The kernel, on all words of the memory."""
        self.launch(name, address, size // 4, 4, stream)

    def fill(self, address: int, size: int, value: int) -> None:
        """By the GPU, byte by byte; waits."""
        self.cuda("cuMemsetD8Async", address, value, size, self.stream)
        self.wait()

    def wait(self, stream: Any = None) -> None:
        """For the stream."""
        self.cuda("cuStreamSynchronize", self.stream if stream is None else stream)

    def put(self, address: int, size: int, place: Any) -> None:
        """Moves memory and waits."""
        self.cuda.prefetch(address, size, place, self.stream)
        self.wait()

    def batch(
        self, name: str, ranges: Sequence[tuple[int, int]], place: Any, stream: Any = None
    ) -> None:
        """cuMemPrefetchBatchAsync, cuMemDiscardAndPrefetchBatchAsync; or cuMemDiscardBatchAsync,
        without a place.
        """
        addresses = [self.cuda.api.CUdeviceptr(address) for address, _ in ranges]
        sizes = [size for _, size in ranges]
        where = () if place is None else ([place], [0], 1)
        self.cuda(
            name,
            addresses,
            sizes,
            len(ranges),
            *where,
            0,
            self.stream if stream is None else stream,
        )

    def milliseconds(self, work: Callable[[], object], stream: Any = None) -> float:
        """GPU time of what `work` queues."""
        return round(self.cuda.milliseconds(self.stream if stream is None else stream, work), 4)

    def has(self, name: str) -> bool:
        """A function of CUDA 13.0."""
        return self.cuda.has(name, 13000)

    def same(self, address: int, size: int, value: int) -> float:
        """The share of pages whose first byte reads so, by way of a copy: managed memory stays
        where it is.
        """
        copy = ctypes.create_string_buffer(size)
        self.cuda("cuMemcpyDtoH", ctypes.addressof(copy), address, size)
        pages = copy.raw[::4096]
        return pages.count(value) / len(pages)


def host_us(work: Callable[[], object]) -> float:
    """How long the call takes."""
    begin = time.perf_counter()
    work()
    return round((time.perf_counter() - begin) * 1e6, 2)


def gbps(size: int, milliseconds: float) -> float:
    """10^9 bytes a second."""
    return round(size / 1e6 / max(milliseconds, 1e-6), 2)
