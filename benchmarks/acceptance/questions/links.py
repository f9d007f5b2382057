"""How fast is the link each way, and both ways at once: pinned copies, prefetches (from one thread,
from two), on demand?
"""

from __future__ import annotations

import threading
import time
from typing import Any

from acceptance.bench import Bench, gbps
from deepum.doctor import link
from deepum.doctor.driver import MIB


def answer(bench: Bench) -> dict[str, Any]:
    cuda = bench.cuda
    findings: dict[str, Any] = {"one_way": link.measure(cuda, bench.simulated)}
    size = bench.whole(256 * MIB)
    other = cuda.stream()
    pinned, device = (
        [cuda.pinned(size) for _ in range(2)],
        [int(cuda("cuMemAlloc", size)) for _ in range(2)],
    )

    def copies() -> None:
        cuda("cuMemcpyHtoDAsync", device[0], pinned[0], size, bench.stream)
        cuda("cuMemcpyDtoHAsync", pinned[1], device[1], size, other)

    findings["both_pinned_gbps"] = gbps(
        2 * size, min(_both(bench, other, copies) for _ in range(3))
    )
    going, coming = cuda.managed(size), cuda.managed(size)
    bench.fill(going, size, 1)
    bench.fill(coming, size, 2)

    def prefetches() -> None:
        cuda.prefetch(coming, size, cuda.gpu, bench.stream)
        cuda.prefetch(going, size, cuda.host, other)

    def in_two_threads() -> None:
        thread = threading.Thread(target=_prefetch_elsewhere, args=(bench, going, size, other))
        thread.start()
        cuda.prefetch(coming, size, cuda.gpu, bench.stream)
        thread.join()

    for name, work in (
        ("both_prefetch_one_thread_gbps", prefetches),
        ("both_prefetch_two_threads_gbps", in_two_threads),
    ):
        best = 0.0
        for _ in range(3):
            bench.put(going, size, cuda.gpu)
            bench.put(coming, size, cuda.host)
            best = max(best, gbps(2 * size, _both(bench, other, work)))
        findings[name] = best
    findings["bytes"] = size
    return findings


def _prefetch_elsewhere(bench: Bench, address: int, size: int, stream: Any) -> None:
    bench.cuda("cuCtxSetCurrent", bench.cuda.context)
    bench.cuda.prefetch(address, size, bench.cuda.host, stream)


def _both(bench: Bench, other: Any, work: Any) -> float:
    """Milliseconds until both streams are done: by GPU events on the simulated GPU, whose time is
    virtual, by the clock on a real one.
    """
    cuda = bench.cuda
    if not bench.simulated:
        begin = time.perf_counter()
        work()
        bench.wait()
        bench.wait(other)
        return (time.perf_counter() - begin) * 1e3

    def joined() -> None:
        work()
        done = cuda.event()
        cuda("cuEventRecord", done, other)
        cuda("cuStreamWaitEvent", bench.stream, done, 0)

    return bench.milliseconds(joined)
