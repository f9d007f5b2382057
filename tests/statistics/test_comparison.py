"""Runs of one program beside each other."""

from __future__ import annotations

from typing import Any

import pytest
from made_runs import FAULTS, FITS, GIB, KERNELS, LINK, merged, run, session, timeline

from deepum.statistics.comparison import compared, conclusion, table

FITTING: dict[str, Any] = {"peak_managed_bytes": GIB, "bytes_prefetched_out": 0}


def three() -> list[tuple[str, dict[str, Any]]]:
    return [
        ("on-demand", run(FAULTS, policy="on-demand", bytes_driver_evicted=8 * GIB)),
        ("deepum", run(LINK)),
        ("unlimited", run(FITS, policy="on-demand", **FITTING)),
    ]


def test_a_step_of_each_is_beside_the_others() -> None:
    comparison = compared(three())
    assert (comparison.per, comparison.clock, comparison.subject) == ("step", "virtual", 1)
    assert [row.ms for row in comparison.rows] == pytest.approx([400, 80, 30])
    assert [row.over_on_demand for row in comparison.rows] == pytest.approx([1, 5, 400 / 30])
    assert [row.of_unlimited for row in comparison.rows] == pytest.approx([400 / 30, 80 / 30, 1])
    assert [row.limit for row in comparison.rows] == ["faults", "link", "nothing: all fits"]
    assert [row.faults for row in comparison.rows] == pytest.approx([3000, 0, 0])
    assert comparison.rows[1].bytes_in == comparison.rows[1].bytes_out == pytest.approx(GIB / 2)
    assert comparison.remarks == ("a step is the mean of 5 of 8 that were found",)
    assert conclusion(comparison) == [
        "deepum is 5.00 times as fast as on-demand paging",
        "with unlimited memory it would take 38% of its time",
    ]
    head, rows = table(comparison)
    assert head[1] == "ms a step" and rows[1][:6] == (
        *("deepum", "80.0", "0", "512.0 MiB", "512.0 MiB", "5.00 x"),
    )


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (timeline([0.1, 0.2, 0.3])[:2], "deepum has no steps"),
        (
            [*LINK[:1], *({**one, "kernels": 2 * one["kernels"]} for one in LINK[1:])],
            "steps differ",
        ),
    ],
)
def test_without_steps_that_are_alike_whole_runs_are_compared(
    other: list[dict[str, Any]], why: str
) -> None:
    runs = three()
    runs[1] = ("deepum", run(other))
    comparison = compared(runs)
    assert comparison.per == "run" and [row.ms for row in comparison.rows] == pytest.approx(
        [3200, other[-1]["t_s"] * 1e3, 240]
    )
    assert any(why in one and "warm-up included" in one for one in comparison.remarks)
    assert table(comparison)[0][1] == "s, virtual"


def test_doubt_of_a_step_is_beside_the_figures() -> None:
    runs = three()
    runs[1] = (
        "deepum",
        runs[1][1] | {"steady_step": runs[1][1]["steady_step"] | {"iterations": 2.0}},
    )
    assert any(one.startswith("doubtful: ") for one in compared(runs).remarks)


def test_on_a_real_gpu_the_clock_is_the_real_one() -> None:
    core = {"launches": KERNELS, "peak_allocated_bytes": 20 * GIB}
    runs = [
        (name, merged([session(core=core)], [], policy=policy) | {"elapsed_s": seconds})
        for name, policy, seconds in (
            ("on-demand", "on-demand", 20.0),
            ("deepum", "correlation", 8.0),
        )
    ]
    comparison = compared(runs)
    assert (comparison.clock, comparison.per) == ("real", "run")
    assert comparison.rows[1].over_on_demand == pytest.approx(2.5)
    assert table(comparison)[1][1][1:4] == ("8.000", "-", "-")
    assert conclusion(comparison) == ["deepum is 2.50 times as fast as on-demand paging"]


@pytest.mark.parametrize(
    ("seconds", "sentence"),
    [
        (0.5, "deepum is slower than on-demand paging: 1.25 times its time"),
        (0.401, "deepum is as fast as on-demand paging"),
    ],
)
def test_what_is_not_faster_is_said_not_to_be(seconds: float, sentence: str) -> None:
    runs = three()[:2]
    runs[1] = ("deepum", run(timeline([seconds] * 8, bytes_in=GIB)))
    assert conclusion(compared(runs)) == [sentence]
