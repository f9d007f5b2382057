"""The last step of a program, from its waits."""

from __future__ import annotations

from typing import Any

import pytest

from deepum.statistics.last_step import last_step


def timeline(kernels: list[int]) -> list[dict[str, Any]]:
    """A wait behind each so many kernels; the n-th kernel takes n seconds, one of them computing,
    two faults and three bytes.
    """
    points, at, total = [], 0.0, 0
    for count in [0, *kernels]:
        at += sum(range(total + 1, total + count + 1))
        total += count
        counts = {"kernels": total, "faults": 2 * total, "bytes_h2d": 3 * total, "bytes_d2h": 0}
        points.append({"t_s": at, "compute_s": float(total), **counts})
    return points


@pytest.mark.parametrize(
    ("kernels", "step"),
    [
        ([7, 2, 2], 2),
        ([9, 1, 5, 1, 5], 6),
        ([5, 1, 5, 1, 5], 6),  # whichever wait it begins at
        ([2, 2, 0, 0], 2),  # waits without work between them
        ([3, 0, 3, 0, 3, 0], 3),
    ],
)
def test_it_is_what_came_twice(kernels: list[int], step: int) -> None:
    found = last_step(timeline(kernels))
    assert found is not None
    last = sum(kernels)
    assert found["s"] == sum(range(last - step + 1, last + 1))
    assert (found["compute_s"], found["kernels"], found["faults"], found["bytes_h2d"]) == (
        step,
        step,
        2 * step,
        3 * step,
    )


@pytest.mark.parametrize("kernels", [[], [4], [1, 2], [3, 1, 2], [0, 0]])
def test_where_nothing_repeats_there_is_none(kernels: list[int]) -> None:
    assert last_step(timeline(kernels)) is None
    assert last_step([{"t_s": 1.0, "kernels": 3}] * 4) is None, "an earlier version's"
