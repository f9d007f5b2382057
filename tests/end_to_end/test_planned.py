"""A program that repeats, does not fit and checks every number that it computes, with plans of its
iterations.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from deepum.core import Plan, PlannedKind, PlannedMove, PlanPoint, plan_files

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]
ARRAYS = 10
ROUNDS = 300  # more than go by while plans are made
PLANNED = ("--policy", "planned")


def core(statistics: dict[str, Any]) -> dict[str, Any]:
    return dict(statistics["processes"][0]["session"]["core"])


def test_a_plan_is_made_tried_and_kept_for_the_next_run(
    run_sweep: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "plan"
    ran = run_sweep(*PLANNED, "--tune", f"plan={file}", arrays=ARRAYS, rounds=ROUNDS)
    statistics = ran.statistics
    assert statistics["policy"] == "planned" and statistics["warnings"] == []
    assert all(plan["launches"] == ARRAYS and plan["moves"] > 0 for plan in statistics["plans"])
    (kept,) = (plan for plan in statistics["plans"] if plan["kept"])
    assert kept["with_us"] < kept["before_us"]
    assert core(statistics)["planned_launches"] > 3 * ARRAYS
    assert "deepum: plans: kept (" in ran.result.stderr
    # What the policy measured is what the program saw: the plan is followed to its end.
    assert median(ran.rounds[-20:]) * 1000 == pytest.approx(kept["with_us"], rel=0.05)

    plan = plan_files.decode(file.read_bytes())
    assert len(plan.launches) == ARRAYS and len(plan.moves) == kept["moves"]
    before = file.read_bytes()
    again = run_sweep(*PLANNED, "--tune", f"plan={file}", arrays=ARRAYS, rounds=4)
    assert core(again.statistics)["planned_launches"] > 2 * ARRAYS
    assert [one["kept"] for one in again.statistics["plans"]] == [True]
    assert "deepum: plans: one was given (" in again.result.stderr
    assert again.rounds[-1] == pytest.approx(median(ran.rounds[-20:]), rel=0.05)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir() if path.name.endswith(".part")] == []


def test_a_plan_of_another_program_does_no_harm(
    run_sweep: Callable[..., Any], tmp_path: Path
) -> None:
    moves = [PlannedMove(2, PlanPoint.AFTER_LAUNCH, PlannedKind.EVICT, 99, 0, 4)]
    data = plan_files.encode(Plan(range(1, 9), moves))
    file = tmp_path / "plan"
    file.write_bytes(data)
    ran = run_sweep(*PLANNED, "--tune", f"plan={file}", rounds=6)
    assert core(ran.statistics)["planned_launches"] == 0 and ran.statistics["warnings"] == []
    assert ran.rounds[-1] < ran.rounds[0]  # the chain goes on


def test_what_fits_is_not_planned(run_sweep: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "plan"
    ran = run_sweep(*PLANNED, "--tune", f"plan={file}", arrays=4, rounds=60)
    assert ran.statistics["plans"] == [] and not file.exists()
    assert "deepum: plans: none, since " in ran.result.stderr


def test_other_policies_plan_nothing(run_sweep: Callable[..., Any]) -> None:
    ran = run_sweep(rounds=3)
    assert ran.statistics["plans"] is None
    assert ran.statistics["missing"]["plans"] == "--policy planned was not given"
    assert "plans:" not in ran.result.stderr


def test_a_damaged_plan_stops_the_run_before_it_starts(
    deepum: Deepum, sweep: list[str], tmp_path: Path
) -> None:
    (tmp_path / "plan").write_bytes(os.urandom(5000))
    options = ("--device", "sim", *PLANNED, "--tune", "plan=plan")
    result = deepum("run", *options, "--", *sweep)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith(f"deepum: error: plan {tmp_path / 'plan'}: not a plan; ")


def test_a_log_of_planned_work_is_not_replayed_but_shown(
    run_sweep: Callable[..., Any], deepum: Deepum, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    run_sweep(*PLANNED, "--record", log, rounds=3)
    refused = deepum("log", "replay", log)
    assert refused.returncode != 0 and "--policy planned" in refused.stderr
    first = deepum("log", "show", log, "--limit", "1").stdout.splitlines()[0]
    assert json.loads(first.removeprefix("# "))["planned"] is True


def test_a_plan_made_of_a_recorded_run_is_followed_by_the_next(
    run_sweep: Callable[..., Any], deepum: Deepum, tmp_path: Path
) -> None:
    log, file = tmp_path / "log", tmp_path / "plan"
    run_sweep("--record", log, rounds=24)
    result = deepum("plan", log, "--gpu-memory", "256MiB", "--planner", "belady", "--output", file)
    assert result.returncode == 0, result.stderr
    before = file.read_bytes()
    ran = run_sweep(*PLANNED, "--tune", f"plan={file}", rounds=6)
    assert core(ran.statistics)["planned_launches"] > 4 * ARRAYS
    assert ran.statistics["warnings"] == [] and file.read_bytes() == before
