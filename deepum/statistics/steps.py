"""A program's steps, as its waits tell: those behind work repeat, as many kernels apart as
before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

_MOST_WAITS = 64  # of a step, further than which no repetition is looked for
_WARM_UP = 3  # steps from which deepum learns
_SECONDS = {"s": "t_s", "compute_s": "compute_s"}
_COUNTS = ("kernels", "faults", "bytes_h2d", "bytes_d2h")
_ADDED_COUNTS = ("fault_batches", "bytes_demand")  # timelines of earlier versions lack the second

Step = dict[str, float | int]


def repeated_steps(timeline: Sequence[Mapping[str, Any]]) -> list[Step]:
    """The steps at the end of a simulated GPU's timeline (docs/simulated-gpu.md) that are alike, in
    their order: seconds from wait to wait, seconds that kernels computed in them, kernels, faults,
    batches of these, bytes each way and, of those to the GPU, by faults. None where nothing repeats
    at the program's end, or the timeline is of a version that lacks a figure.
    """
    if any(key not in point for point in timeline[-1:] for key in (*_SECONDS.values(), *_COUNTS)):
        return []
    waits = [
        *timeline[:1],
        *(after for before, after in pairwise(timeline) if after["kernels"] > before["kernels"]),
    ]
    between = [int(after["kernels"]) - int(before["kernels"]) for before, after in pairwise(waits)]
    end = len(between)
    for count in range(1, min(end // 2, _MOST_WAITS) + 1):
        pattern = between[end - count :]
        first = end - count
        while first >= count and between[first - count : first] == pattern:
            first -= count
        if first < end - count:
            return [
                _step(waits[at], waits[at + count]) for at in range(first, end - count + 1, count)
            ]
    return []


def _step(first: Mapping[str, Any], last: Mapping[str, Any]) -> Step:
    counts = [*_COUNTS, *(key for key in _ADDED_COUNTS if key in last)]
    seconds: Step = {name: float(last[key]) - float(first[key]) for name, key in _SECONDS.items()}
    return seconds | {key: int(last[key]) - int(first[key]) for key in counts}


def last_step(steps: Sequence[Step]) -> Step | None:
    """The last of `repeated_steps`, as statistics have it."""
    return {key: steps[-1][key] for key in (*_SECONDS, *_COUNTS)} if steps else None


def steady_step(
    steps: Sequence[Step], core: Mapping[str, Any] | None, kernels: int
) -> dict[str, Any] | None:
    """The mean of `repeated_steps` without the first ones: three, or half of them where there are
    fewer than six. `steps`: how many were found, `mean_of`: of how many it is the mean,
    `iterations`: how many iterations of the launches, as the process's `core` found them, make one
    of them; None where it found none. `kernels`: of the process in all.
    """
    if not steps:
        return None
    steady = steps[min(_WARM_UP, len(steps) // 2) :]
    mean = {key: sum(step[key] for step in steady) / len(steady) for key in steps[-1]}
    return mean | {
        "steps": len(steps),
        "mean_of": len(steady),
        "iterations": _iterations(mean["kernels"], core or {}, kernels),
    }


def _iterations(of_step: float, core: Mapping[str, Any], kernels: int) -> float | None:
    """Launches of the core are kernels, copies and memsets, and the waits tell of kernels alone:
    they are taken to be as large a part of an iteration as of the whole program.
    """
    launches, iteration = core.get("launches", 0), core.get("iteration_launches", 0)
    if not launches or not iteration or not kernels:
        return None
    return float(of_step * launches / (iteration * kernels))
