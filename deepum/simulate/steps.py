"""From the marks of a replay to the steps of a program: how long each took, what it moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepum.core import Execute, events
from deepum.simulate.replay import Mark, Outcome
from deepum.trace import Trace

WARM_UP = 3  # steps that are not counted: "from the fourth iteration on"
COUNTED = ("faults", "fault_batches", "bytes_h2d", "bytes_d2h", "bytes_demand", "bytes_driver_evicted", "bytes_discarded", "stall_ns")
_LEAST = 3  # times that the same is launched
_ALIKE = 0.5  # of the launches, at least: runs have beginnings and ends
_CLEARLY = 0.005  # better than a shorter period


@dataclass(frozen=True)
class Step:
    """ns of virtual time, launches, and how far each counter of COUNTED went."""

    ns: float
    launches: int
    counts: dict[str, float]


def _between(before: Mark | None, after: Mark) -> Step:
    counts = {name: after.counters[name] - (before.counters[name] if before else 0) for name in COUNTED}
    return Step(after.ns - (before.ns if before else 0), after.launches - (before.launches if before else 0), counts)


def period(hashes: Sequence[int]) -> int | None:
    """Launches after which a program launches the same again; None if it never does.

    Tried are the distances between places of a hash that is launched seldom, three times at least; taken is the shortest after which nearly
    all is the same again, from the first quarter on: what comes before and after the steps is not.
    """
    told = np.array(hashes, dtype=np.uint64)
    values, counts = np.unique(told, return_counts=True)
    often = counts >= _LEAST
    if not often.any():
        return None
    seldom = values[often][np.argmin(counts[often])]
    best, found = _ALIKE, None
    for distance in sorted(set(np.diff(np.flatnonzero(told == seldom)).tolist())):
        behind = told[len(told) // 4 :]
        if distance * 2 > len(behind):
            continue
        alike = float(np.mean(behind[distance:] == behind[:-distance]))
        if alike > best + _CLEARLY:
            best, found = alike, int(distance)
    return found


def _ends(waits: Sequence[Mark], distance: int) -> list[Mark]:
    """Waits that follow each other by so many launches, up to the last that can be."""
    by_launches = {mark.launches: mark for mark in waits}
    for last in sorted(by_launches, reverse=True):
        if last - distance in by_launches and last - 2 * distance in by_launches:
            return [by_launches[at] for at in range(last % distance, last + 1, distance) if at in by_launches]
    return []


def steps(outcome: Outcome, trace: Trace) -> list[Step]:
    """The steps: where the trace tells their ends, from end to end; else from wait to wait of the program, as many launches apart as it
    takes for these to repeat. One step, the whole run, if it does not repeat itself."""
    ends = [mark for mark in outcome.marks if mark.kind == "step"]
    waits = [mark for mark in outcome.marks if mark.kind == "synchronise"]
    if not ends and waits:
        distance = period([event.execution_hash for event in events(trace.events) if isinstance(event, Execute)])
        ends = _ends(waits, distance) if distance is not None else []
    if not ends:
        return [Step(outcome.ns, outcome.core.launches, {name: outcome.counters[name] for name in COUNTED})]
    return [_between(before, after) for before, after in zip([None, *ends], ends, strict=False)]


def steady(all_steps: Sequence[Step]) -> list[Step]:
    """Those after the warm-up, without the last: what follows it in a longer run has begun before its end. All but the first where there
    are too few."""
    kept = list(all_steps[WARM_UP:-1])
    return kept or list(all_steps[1:]) or list(all_steps)
