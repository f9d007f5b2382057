"""What do discard, and discard with prefetch, do to memory, content and time?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acceptance.bench import BLOCK, Bench, host_us
from acceptance.counters import Counters
from deepum.doctor.driver import MIB

OLD, NEW = 0x11, 1  # NEW: what the kernel writes


def answer(bench: Bench) -> dict[str, Any]:
    cuda = bench.cuda
    if not bench.has("cuMemDiscardAndPrefetchBatchAsync"):
        return {"supported": False}
    counters = Counters(int(cuda.device))
    size = bench.whole(256 * MIB)
    memory = cuda.managed(size)
    findings: dict[str, Any] = {
        "supported": True,
        "bytes": size,
        "counters": counters.refused or "CUPTI",
    }

    def move(name: str, work: Callable[[], None]) -> dict[str, Any]:
        bench.put(memory, size, cuda.gpu)
        bench.fill(memory, size, OLD)
        counters.take()
        before = cuda.free_bytes()
        host = 0.0

        def timed() -> None:
            nonlocal host
            host = host_us(work)

        elapsed = bench.milliseconds(timed)
        findings[name] = {
            "host_us": host,
            "gpu_ms": elapsed,
            "free_bytes_won": cuda.free_bytes() - before,
            "counted": counters.take(),
        }
        return dict(findings[name])

    move("prefetch_to_host", lambda: cuda.prefetch(memory, size, cuda.host, bench.stream))
    move(
        "discard_and_prefetch_to_host",
        lambda: bench.batch("cuMemDiscardAndPrefetchBatchAsync", [(memory, size)], cuda.host),
    )
    # What a program does with memory that it is handed out again: it writes, and reads that. By way
    # of a fault, then of a prefetch.
    findings["discard_and_prefetch_to_host"]["written_after"] = _rewrite(
        bench, memory, size, prefetch=False
    )
    move(
        "again",
        lambda: bench.batch("cuMemDiscardAndPrefetchBatchAsync", [(memory, size)], cuda.host),
    )
    findings["again"]["written_after_prefetch"] = _rewrite(bench, memory, size, prefetch=True)
    blocks = [(memory + at, BLOCK) for at in range(0, size, BLOCK)]
    move(
        "discard_and_prefetch_block_by_block",
        lambda: bench.batch("cuMemDiscardAndPrefetchBatchAsync", blocks, cuda.host),
    )
    move(
        "discard_and_prefetch_to_gpu",
        lambda: bench.batch("cuMemDiscardAndPrefetchBatchAsync", [(memory, size)], cuda.gpu),
    )
    findings["discard_and_prefetch_to_gpu"]["written_after"] = _rewrite(
        bench, memory, size, prefetch=False
    )
    move("discard", lambda: bench.batch("cuMemDiscardBatchAsync", [(memory, size)], None))
    # The danger: if the old mapping stays, the write takes no fault, the memory still counts as
    # discarded, and leaving the GPU loses it.
    findings["discard"]["written_after"] = _rewrite(bench, memory, size, prefetch=False)
    if not bench.simulated:  # there, reading what was discarded is an error
        move(
            "read_unwritten", lambda: bench.batch("cuMemDiscardBatchAsync", [(memory, size)], None)
        )
        findings["read_unwritten"]["old_content"] = bench.same(memory, size, OLD)
        findings["read_unwritten"]["zeros"] = bench.same(memory, size, 0)
    counters.stop()
    cuda.free(memory)
    return findings


def _rewrite(bench: Bench, memory: int, size: int, prefetch: bool) -> dict[str, Any]:
    """What is written on the GPU after a discard is sent to the host and read: the share of pages
    that have it, which has to be 1.
    """
    if prefetch:
        bench.put(memory, size, bench.cuda.gpu)

    def write() -> None:
        if bench.simulated:  # whose kernels compute nothing
            bench.cuda("cuMemsetD8Async", memory, NEW, size, bench.stream)
        else:
            bench.sweep("write", memory, size)

    elapsed = bench.milliseconds(write)
    there = bench.same(memory, size, NEW)
    bench.put(memory, size, bench.cuda.host)
    return {
        "write_ms": elapsed,
        "right_on_gpu": there,
        "right_after_leaving": bench.same(memory, size, NEW),
    }
