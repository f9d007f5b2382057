"""--gpu-memory: the memory of the simulated card, or a budget below it that only deepum keeps, as
on a real GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from budget_tools import MIB, SOFT, Ran

from deepum.core import Device, EventLog, events

BUDGET = 256 * MIB
CARD = 16 << 30
Run = Callable[..., Ran]


@pytest.mark.parametrize(("env", "card"), [({}, BUDGET), (SOFT, CARD)], ids=["card", "budget"])
def test_residency_stays_within_it(
    run: Run, sweep: list[str], env: dict[str, str], card: int
) -> None:
    ran = run(["--gpu-memory", "256MiB"], *sweep, 10, 40, 6, env=env)
    assert ran.out.endswith("all 10 arrays are right\n")
    assert ran.simulated["memory_bytes"] == card
    assert ran.simulated["peak_managed_bytes"] == 400 * MIB
    assert ran.simulated["peak_resident_bytes"] <= BUDGET
    assert ran.statistics["bytes_evicted"] > 0
    assert (ran.statistics["budget_overshoot_bytes"], ran.statistics["launches_over_capacity"]) == (
        0,
        0,
    )


def test_a_launch_that_alone_exceeds_the_budget_runs_and_is_reported(
    run: Run, sweep: list[str]
) -> None:
    ran = run(["--gpu-memory", "256MiB"], *sweep, 3, 300, 2, env=SOFT)
    assert ran.out.endswith("all 3 arrays are right\n")
    # The fills, the sweeps, the copies back.
    assert ran.statistics["launches_over_capacity"] == 3 + 2 * 3 + 3
    # The driver took what the launch needed; the program's waits saw the most of it.
    assert (
        0
        < ran.statistics["budget_overshoot_bytes"]
        == ran.simulated["peak_resident_bytes"] - BUDGET
    )
    assert ran.statistics["budget_overshoot_bytes"] < 300 * MIB
    assert (
        ran.err.count("12 launches alone needed more GPU memory than they may have; they ran\n")
        == 1
    )
    assert ran.err.count("exceeded the budget by up to 132.0 MiB\n") == 1


def test_on_a_card_of_that_size_such_a_launch_runs_within_it(run: Run, sweep: list[str]) -> None:
    ran = run(["--gpu-memory", "256MiB"], *sweep, 3, 300, 1)
    assert ran.out.endswith("all 3 arrays are right\n")
    assert ran.statistics["launches_over_capacity"] == 9
    assert ran.statistics["budget_overshoot_bytes"] == 0
    assert ran.simulated["peak_resident_bytes"] <= BUDGET


def test_watching_only_does_not_keep_the_budget_and_says_by_how_much(
    run: Run, sweep: list[str]
) -> None:
    ran = run(["--gpu-memory", "256MiB", "--policy", "on-demand"], *sweep, 10, 40, 2, env=SOFT)
    assert ran.statistics["launches_over_capacity"] == 0
    assert ran.statistics["budget_overshoot_bytes"] == 400 * MIB - BUDGET


def test_without_a_budget_nothing_is_said_of_it(run: Run, sweep: list[str]) -> None:
    ran = run([], *sweep, 3, 40, 2)
    assert (ran.statistics["budget_overshoot_bytes"], ran.statistics["launches_over_capacity"]) == (
        None,
        0,
    )
    assert "exceeded the budget" not in ran.err and "alone" not in ran.err


def test_plain_device_memory_lessens_what_managed_memory_may_occupy(
    python: Run, tmp_path: Path
) -> None:
    python(
        ["--gpu-memory", "256MiB", "--record", str(tmp_path / "log")],
        """
start()
small = [try_alloc(MiB // 2)[1] for _ in range(10)]
try_alloc(4 * MiB)
for address in small:
    free(address)
tell()
""",
        env=SOFT,
    )
    changes = [
        event
        for event in events(EventLog.read(tmp_path / "log").records)
        if isinstance(event, Device)
    ]
    assert [event.kind for event in changes] == ["device"] + ["capacity"] * (len(changes) - 1)
    # 5 MiB in all: two whole UM blocks of them.
    assert [(BUDGET - event.capacity_bytes) // MIB for event in changes] == [0, 2, 4, 2, 0]
