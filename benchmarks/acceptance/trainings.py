"""Runs train.py plainly or under deepum, and reads what it and deepum tell."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

from acceptance import processes
from acceptance.place import Place
from acceptance.watch import Watch
from deepum.core import EventLog

# Of each run; figures are of the second half, when deepum has learned what there is.
STEPS, SHORT_STEPS = 10, 6
MOST_SECONDS = 60.0  # that a run may take
# What is compared. Emulated: what deepum evicts comes back by faults alone; it is not the driver's
# own oversubscription. In lock-step, so that a launch waits for the room that it takes, as a fault
# waits for the driver to make some: else it goes beyond its budget.
PLAIN, DEEPUM, SYNC, EMULATED = "plain", "deepum", "deepum --sync", "budgeted on-demand, emulated"
_OPTIONS: dict[str, list[str]] = {
    DEEPUM: [],
    SYNC: ["--sync"],
    EMULATED: ["--tune", "prefetch=0", "--sync"],
}
_STATISTICS: tuple[str, ...] = (
    "peak_resident_bytes",
    "budget_overshoot_bytes",
    "launches_over_capacity",
    "bytes_prefetched",
    "bytes_evicted",
)
_STATISTICS += (
    "bytes_invalidated",
    "peak_remote_bytes",
    "faults",
    "bytes_h2d",
    "bytes_d2h",
    "warnings",
)


def mean(values: list[float]) -> float:
    """Of the second half."""
    later = values[len(values) // 2 :]
    return round(sum(later) / len(later), 4)


def train(
    place: Place,
    watch: Watch,
    model: str,
    what: str,
    budget: int | None,
    seconds: float,
    variants: tuple[str, ...] = (PLAIN,),
) -> list[dict[str, Any]]:
    """A row a variant: `step_ms` is the mean of the later steps. A run that fails has `error`
    instead. With a budget it is recorded, in `place.log`, and `settings` are those of its core.
    """
    seconds = min(seconds, MOST_SECONDS)
    script = [
        sys.executable,
        "-P",
        "-m",
        "acceptance.train",
        model,
        "--steps",
        str(SHORT_STEPS if place.short else STEPS),
    ]
    script += (
        ["--short"] * place.short
        + ["--without-cudnn"] * place.simulated
        + [f"--variant={variant}" for variant in variants]
    )
    stats = Path(place.folder) / "stats.json"
    stats.unlink(missing_ok=True)
    place.log.unlink(missing_ok=True)
    extra = {}
    if what == PLAIN:
        # Device memory, of which as much is asked for as the program needs. On the simulated GPU
        # the launcher brings its driver alone.
        command = place.under_deepum([], script) if place.simulated else script
        extra = {"DEEPUM_DISABLE": "1"} if place.simulated else {}
    else:
        limit = (
            ["--gpu-memory", str(budget), "--record", str(place.log)] if budget is not None else []
        )
        command = place.under_deepum([*limit, "--stats", str(stats), *_OPTIONS[what]], script)
    before = watch.take()
    ran = processes.run(command, place.environment(extra), seconds)
    after = watch.take()
    rows = []
    for line in ran.out.splitlines():
        with contextlib.suppress(ValueError):
            record = json.loads(line)
            rows.append(
                record | ({} if "error" in record else {"step_ms": mean(record["steps_ms"])})
            )
    if not rows or ran.trouble is not None:
        rows.append(
            {
                "variant": variants[min(len(rows), len(variants) - 1)],
                "error": ran.trouble or "told nothing",
            }
        )
    with contextlib.suppress(OSError, ValueError):
        read = json.loads(stats.read_text(encoding="utf-8"))
        # What the core asked for: simulated drivers count what was moved of it instead.
        cores = [(process["session"] or {}).get("core") or {} for process in read["processes"]]
        evicted_bytes = sum(core.get("bytes_evicted", 0) for core in cores)
        rows[0]["statistics"] = {name: read[name] for name in _STATISTICS} | {
            "bytes_evicted_asked": evicted_bytes
        }
    with contextlib.suppress(OSError, ValueError, KeyError):
        rows[0]["settings"] = EventLog.read(place.log).settings["settings"]
    for row in rows:
        row |= {
            "model": model,
            "what": what if what != PLAIN else row["variant"],
            "budget_bytes": budget,
            "seconds": round(ran.seconds, 1),
        }
    if before is not None and after is not None:
        rows[0]["peak_used_bytes"] = after[1] - before[0]  # of all variants of this process
    return rows


class Deadline:
    """Seconds that are left of a section's."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Never below 0."""
        return max(0.0, self._end - time.monotonic())
