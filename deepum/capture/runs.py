"""Where the elements of a strided operand lie: runs of memory, with what is left out
between them.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deepum.trace.work import REGION_BYTES

_MOST = 1 << 16  # runs of an operand


@dataclass(frozen=True, slots=True)
class Runs:
    """Places (offset, bytes) from a tensor's first byte on, in order; the same in every step."""

    places: tuple[tuple[int, int], ...]

    def at(self, step: int) -> Sequence[tuple[int, int]]:
        """All of them."""
        return self.places


def runs(tensor: Any) -> Runs | None:
    """Those of a tensor; None where it is met in full, from its first element to its last: gaps
    shorter than a region are not left out, nor are more than 65536 (native/simgpu/runs.hpp has the
    same rule).
    """
    return strided(tuple(tensor.shape), tuple(tensor.stride()), tensor.itemsize)


@functools.lru_cache(maxsize=4096)
def strided(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Runs | None:
    """The same; strides in elements."""
    if 0 in shape:
        return None
    run = itemsize
    outer: list[range] = []
    for stride, size in sorted(
        (stride * itemsize, size) for size, stride in zip(shape, strides, strict=True) if size > 1
    ):
        if not outer and stride - run < REGION_BYTES:
            run = max(run, (size - 1) * stride + run)
        else:
            outer.append(range(0, size * stride, stride))
    if math.prod(map(len, outer)) > _MOST:
        return None
    merged: list[tuple[int, int]] = []  # first byte, and the one behind the last
    for start in sorted(sum(offsets) for offsets in itertools.product(*outer)):
        if merged and start - merged[-1][1] < REGION_BYTES:
            merged[-1] = merged[-1][0], max(merged[-1][1], start + run)
        else:
            merged.append((start, start + run))
    return Runs(tuple((start, end - start) for start, end in merged)) if len(merged) > 1 else None
