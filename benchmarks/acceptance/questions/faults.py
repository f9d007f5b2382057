"""What does access on demand cost: by bytes (all of the memory) and by faults (a word of each
block)? And what does watching it cost?
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from acceptance.bench import BLOCK, Bench
from acceptance.counters import Counters
from deepum.doctor.driver import MIB

_SIZES = (2, 8, 32, 64, 128, 256)  # MiB
_ROUNDS = 3
_BATCH_BLOCKS = 32  # a batch has 256 faults, a block that is swept 6 (docs/um-model.md)


def answer(bench: Bench) -> dict[str, Any]:
    cuda = bench.cuda
    most = bench.whole(_SIZES[-1] * MIB)
    memory = cuda.managed(most)
    findings: dict[str, Any] = {
        "first_touch_ms": bench.milliseconds(lambda: bench.sweep("write", memory, most)),
        "bytes": most,
    }
    sizes = [mib * MIB for mib in _SIZES if mib * MIB <= most]
    for name, rows in _rows(bench, memory, sizes).items():
        findings[name] = rows
        findings[f"{name}_fit"] = _fit(rows)
    watched = Counters(int(cuda.device))
    findings["watched"] = {"refused": watched.refused}
    if watched.refused is None:
        findings["watched"]["swept"] = _rows(bench, memory, sizes)["swept"]
        findings["watched"]["counted"] = watched.take()
        findings["watched"]["records"] = watched.records
        watched.stop()
    cuda.free(memory)
    return findings


def _rows(bench: Bench, memory: int, sizes: list[int]) -> dict[str, list[dict[str, Any]]]:
    """Least times by size: swept, and one word of each block."""
    rows: dict[str, list[dict[str, Any]]] = {"swept": [], "word_of_each_block": []}
    for size in sizes:
        for name, table in rows.items():
            best = 1e9
            for _ in range(_ROUNDS):
                bench.put(memory, size, bench.cuda.host)
                launch = (
                    partial(bench.sweep, "read", memory, size)
                    if name == "swept"
                    else partial(bench.launch, "read", memory, size // BLOCK, BLOCK)
                )
                best = min(best, bench.milliseconds(launch))
            table.append({"bytes": size, "blocks": size // BLOCK, "ms": best})
    return rows


def _fit(rows: list[dict[str, Any]]) -> dict[str, float] | None:
    """Microseconds at the start and for a block more, by least squares over what one batch of
    faults may hold.
    """
    rows = [row for row in rows if row["blocks"] <= _BATCH_BLOCKS]
    if len(rows) < 2:
        return None
    slope, base = np.polyfit([row["blocks"] for row in rows], [row["ms"] * 1e3 for row in rows], 1)
    return {
        "base_us": round(float(base), 2),
        "us_per_block": round(float(slope), 3),
        "us_per_kib": round(float(slope) / 2048, 5),
    }
