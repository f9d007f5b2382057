"""What is counted is told as counted, what is asked for or believed as that."""

from __future__ import annotations

from typing import Any

import pytest

from deepum.statistics.summary import summary

GIB = 1 << 30


def report(**changed: Any) -> dict[str, Any]:
    """Of a run on a real GPU, where the driver tells nothing of faults and transfers."""
    return {
        "device": "cuda",
        "policy": "correlation",
        "prefetch_degree": 32,
        "kernels": 7,
        "processes": [{"pid": 1, "session": None, "simulated": None}],
        "devices": None,
        "gpu_time_s": None,
        "gpu_memory_bytes": None,
        "faults": None,
        "prefetch_coverage": None,
        "prefetch_accuracy": None,
        "bytes_prefetched": 3 * GIB,
        "bytes_prefetched_again": 0,
        "bytes_evicted": 2 * GIB,
        "peak_resident_bytes": GIB,
        "peak_allocated_bytes": 4 * GIB,
        "launches_over_capacity": 0,
        "peak_remote_bytes": 0,
        "budget_overshoot_bytes": 5 * GIB,
        "warnings": [],
        **changed,
    }


def test_on_a_real_gpu_nothing_is_said_to_have_moved() -> None:
    lines = summary(report(), [])
    assert "asked to prefetch 3.0 GiB, to evict 2.0 GiB" in lines
    assert "peak 1.0 GiB believed on the GPU, 4.0 GiB allocated" in lines
    assert (
        "up to 5.0 GiB more than the budget were not free of the GPU; the driver may count "
        "what was evicted among them"
    ) in lines
    assert not any(
        line.startswith(("prefetched", "peak 1.0 GiB on")) or "exceeded" in line for line in lines
    )


def test_the_simulated_gpu_counts() -> None:
    lines = summary(report(device="sim:v100-16gb", devices=[]), [])
    assert "prefetched 3.0 GiB, evicted 2.0 GiB" in lines
    assert "peak 1.0 GiB on the GPU, 4.0 GiB allocated" in lines
    assert "the GPU's memory in use exceeded the budget by up to 5.0 GiB" in lines


def test_the_summary_says_how_much_of_it_was_computing() -> None:
    simulated = report(device="sim:v100-16gb", devices=[], gpu_time_s=2.0, compute_s=1.25)
    lines = summary(
        simulated
        | {
            "last_step": {
                "s": 0.5,
                "compute_s": 0.25,
                "kernels": 9,
                "faults": 3,
                "bytes_h2d": 1 << 30,
                "bytes_d2h": 0,
            }
        }
    )
    assert lines[0].endswith(
        "7 kernels in 2.000 s of virtual GPU time, of which they computed 1.250 s"
    )
    assert (
        "the last step: 9 kernels in 500.0 ms, computing for 250.0 ms; 3 faults, 1.0 GiB to "
        "the GPU, 0 B back"
    ) in lines


def plan(**told: Any) -> dict[str, Any]:
    """What a session reports of one."""
    unknown = {"launches": 9, "moves": 4, "before_us": None, "with_us": None}
    return unknown | {"kept": False, "reason": None} | told


@pytest.mark.parametrize(
    ("plans", "told"),
    [
        ([], "none, since no iteration was seen to repeat that memory is short for"),
        ([plan()], "none kept: the program ended before one had been tried"),
        ([plan(before_us=5e3, reason="no plan was found")], "none kept: no plan was found"),
        ([plan(kept=True)], "one was given (4 moves an iteration)"),
        (
            [plan(before_us=1.31e6, with_us=1.12e6, kept=True)],
            "kept (1.31 s an iteration before, 1.12 s with it)",
        ),
        (
            [
                plan(reason="the iteration changed", launches=8, before_us=1e3),
                plan(before_us=2e4, with_us=1.9e4),
                plan(before_us=1.9e4, with_us=1.8e4, kept=True),
                plan(before_us=1.8e4, with_us=2e4, reason="iterations are not shorter with it"),
            ],
            "kept (20.00 ms an iteration before, 18.00 ms with it)",
        ),
    ],
)
def test_what_became_of_plans_is_a_line(plans: list[dict[str, Any]], told: str) -> None:
    assert f"plans: {told}" in summary(report(plans=plans), [])


@pytest.mark.parametrize("changed", [{}, {"plans": None}])
def test_without_the_policy_that_plans_there_is_no_such_line(changed: dict[str, Any]) -> None:
    assert not [line for line in summary(report(**changed), []) if line.startswith("plans")]


def test_the_summary_counts_steps() -> None:
    counted = {"iterations": 12, "iteration_launches": 855}
    lines = summary(report() | counted)
    assert "12 steps were found in the launches, of 855 launches each at the end" in lines
    assert "1 step was found in the launches" in summary(
        report() | {"iterations": 1, "iteration_launches": 0}
    )
    assert not any("found in the launches" in line for line in summary(report()))
    two = report() | counted
    two["processes"] = [*two["processes"], *two["processes"]]
    assert any(
        "found in the launches of the process that made most" in line for line in summary(two)
    )
