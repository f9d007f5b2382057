"""READ_MOSTLY: does a prefetch to the CPU leave the GPU's copy, and can that copy be dropped
afterwards without a transfer?
"""

from __future__ import annotations

from typing import Any

from acceptance.bench import Bench, gbps
from acceptance.counters import Counters
from deepum.doctor.driver import MIB


def answer(bench: Bench) -> dict[str, Any]:
    cuda = bench.cuda
    counters = Counters(int(cuda.device))
    size = bench.whole(256 * MIB)
    memory = cuda.managed(size)
    bench.fill(memory, size, 7)
    findings: dict[str, Any] = {"bytes": size, "counters": counters.refused or "CUPTI"}
    findings["resident_read_ms"] = bench.milliseconds(lambda: bench.sweep("read", memory, size))

    def step(name: str, work: Any) -> None:
        """What it takes, what the card has more afterwards, and what a kernel then sees: at the
        GPU's own speed the copy is there.
        """
        counters.take()
        before = cuda.free_bytes()
        elapsed = bench.milliseconds(work)
        findings[name] = {
            "gpu_ms": elapsed,
            "free_bytes_won": cuda.free_bytes() - before,
            "counted": counters.take(),
        }

    def read(name: str) -> None:
        elapsed = bench.milliseconds(lambda: bench.sweep("read", memory, size))
        findings[name] |= {
            "read_after_ms": elapsed,
            "read_after_gbps": gbps(size, elapsed),
            "counted_reading": counters.take(),
        }

    cuda.advise(memory, size, "SET_READ_MOSTLY", cuda.gpu)
    step(
        "prefetch_to_host_duplicates", lambda: cuda.prefetch(memory, size, cuda.host, bench.stream)
    )
    read("prefetch_to_host_duplicates")

    def drop() -> None:
        cuda.advise(memory, size, "SET_PREFERRED_LOCATION", cuda.host)
        cuda.advise(memory, size, "UNSET_READ_MOSTLY", cuda.gpu)

    step("collapse_to_host", drop)
    read("collapse_to_host")
    findings["content_right"] = bench.same(memory, size, 7)
    cuda.advise(memory, size, "UNSET_PREFERRED_LOCATION", cuda.host)
    # And a write while both copies are there, which has to drop the CPU's.
    bench.put(memory, size, cuda.gpu)
    cuda.advise(memory, size, "SET_READ_MOSTLY", cuda.gpu)
    bench.put(memory, size, cuda.host)
    step("write_to_duplicates", lambda: cuda("cuMemsetD8Async", memory, 9, size, bench.stream))
    findings["written_content_right"] = bench.same(memory, size, 9)
    step("write_again", lambda: cuda("cuMemsetD8Async", memory, 9, size, bench.stream))
    cuda.advise(memory, size, "UNSET_READ_MOSTLY", cuda.gpu)
    counters.stop()
    cuda.free(memory)
    return findings
