"""A program's last step, as its waits tell: those behind work repeat, as many kernels apart as
before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

_MOST_WAITS = 64  # of a step, further than which no repetition is looked for
_SECONDS = {"s": "t_s", "compute_s": "compute_s"}
_COUNTS = ("kernels", "faults", "bytes_h2d", "bytes_d2h")


def last_step(timeline: Sequence[Mapping[str, Any]]) -> dict[str, float | int] | None:
    """Of a simulated GPU's timeline (docs/simulated-gpu.md): seconds from wait to wait, seconds
    that kernels computed in them, kernels, faults and bytes each way. None where nothing repeats at
    the program's end, or the timeline is of a version that lacks a figure.
    """
    if any(key not in point for point in timeline[-1:] for key in (*_SECONDS.values(), *_COUNTS)):
        return None
    waits = [
        *timeline[:1],
        *(after for before, after in pairwise(timeline) if after["kernels"] > before["kernels"]),
    ]
    between = [int(after["kernels"]) - int(before["kernels"]) for before, after in pairwise(waits)]
    end = len(between)
    for count in range(1, min(end // 2, _MOST_WAITS) + 1):
        if between[end - count :] == between[end - 2 * count : end - count]:
            first, last = waits[end - count], waits[end]
            seconds = {name: float(last[key]) - float(first[key]) for name, key in _SECONDS.items()}
            return seconds | {key: int(last[key]) - int(first[key]) for key in _COUNTS}
    return None
