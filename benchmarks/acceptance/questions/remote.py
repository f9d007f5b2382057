"""PREFERRED_LOCATION = CPU with ACCESSED_BY = GPU: is memory used where it is, atomics too, and how
fast?
"""

from __future__ import annotations

from typing import Any

from acceptance.bench import Bench, gbps
from acceptance.counters import Counters
from deepum.doctor.driver import MIB

_LINE = 128  # bytes: one access each


def answer(bench: Bench) -> dict[str, Any]:
    cuda = bench.cuda
    counters = Counters(int(cuda.device))
    size = bench.whole(256 * MIB)
    memory = cuda.managed(size)
    bench.fill(memory, size, 0)
    findings: dict[str, Any] = {"bytes": size, "counters": counters.refused or "CUPTI"}
    findings["resident_read_gbps"] = gbps(
        size, bench.milliseconds(lambda: bench.sweep("read", memory, size))
    )
    cuda.advise(memory, size, "SET_PREFERRED_LOCATION", cuda.host)
    cuda.advise(memory, size, "SET_ACCESSED_BY", cuda.gpu)
    bench.put(memory, size, cuda.host)
    for name in ("read", "write", "add"):
        for turn in ("first", "second"):
            counters.take()
            before = cuda.free_bytes()
            elapsed = bench.milliseconds(lambda name=name: bench.sweep(name, memory, size))  # type: ignore[misc]
            findings[f"{name}_{turn}"] = {
                "gbps": gbps(size, elapsed),
                "gpu_bytes_taken": before - cuda.free_bytes(),
                "counted": counters.take(),
            }
    # A line each: what it costs to use a little of every line.
    elapsed = bench.milliseconds(lambda: bench.launch("read", memory, size // _LINE, _LINE))
    findings["lines_read_per_us"] = round(size / _LINE / (elapsed * 1e3), 2)
    if not bench.simulated:  # there, kernels compute nothing: 1 was written, 2 added
        findings["atomics_right"] = bench.same(memory, size, 3)
    cuda.advise(memory, size, "UNSET_ACCESSED_BY", cuda.gpu)
    cuda.advise(memory, size, "UNSET_PREFERRED_LOCATION", cuda.host)
    counters.stop()
    cuda.free(memory)
    return findings
