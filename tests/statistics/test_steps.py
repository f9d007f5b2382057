"""The steps of a program, from its waits."""

from __future__ import annotations

from typing import Any

import pytest

from deepum.statistics.steps import last_step, repeated_steps, steady_step


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
    found = last_step(repeated_steps(timeline(kernels)))
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
    assert last_step(repeated_steps(timeline(kernels))) is None
    assert repeated_steps([{"t_s": 1.0, "kernels": 3}] * 4) == [], "an earlier version's"


@pytest.mark.parametrize(
    ("kernels", "found", "mean_of"),
    [
        ([9, 2, 2], 2, 1),
        ([9, 2, 2, 2], 3, 2),
        ([1, 5, 1, 5, 1, 5, 1, 5, 1, 5], 5, 3),
        ([4, *[3] * 8], 8, 5),
        ([2, 2, 7, 2, 2, 2, 2], 4, 2),  # what is alike before something else is no such step
    ],
)
def test_the_steady_step_is_the_mean_without_the_first_ones(
    kernels: list[int], found: int, mean_of: int
) -> None:
    steps = repeated_steps(timeline(kernels))
    figures = steady_step(steps, None, sum(kernels))
    assert figures is not None
    assert (figures["steps"], figures["mean_of"], figures["iterations"]) == (found, mean_of, None)
    last = [step["s"] for step in steps[-mean_of:]]
    assert figures["s"] == pytest.approx(sum(last) / len(last))
    assert steps[-1] == {**steps[-1], **(last_step(steps) or {})}
    assert steady_step([], None, 0) is None


@pytest.mark.parametrize(("iteration", "iterations"), [(6, 1.0), (3, 2.0), (12, 0.5), (0, None)])
def test_iterations_of_the_launches_are_counted_in_a_step(
    iteration: int, iterations: float | None
) -> None:
    """Of a program of which half of the launches are kernels."""
    steps = repeated_steps(timeline([3] * 8))
    core = {"launches": 48, "iteration_launches": iteration}
    found = steady_step(steps, core, 24)
    assert found is not None and found["iterations"] == iterations
