"""`deepum plan`, and the steady iteration of a workload."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from small import training

from deepum.planners import Event, Problem
from deepum.planners.catalogue import BY_NAME, PLANNERS
from deepum.planners.planner import Limits
from deepum.simulate import bound
from deepum.simulate.iterations import iteration_of, steady_iteration
from deepum.simulate.workload import load

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    training(tmp_path / "training")
    return tmp_path / "training"


def test_pieces_of_launches_become_items() -> None:
    works = [
        bound.Work(5.0, (bound.Use("w", 64, True, False), bound.Use("a", 32, False, True, True))),
        bound.Work(7.0, (bound.Use("a", 32, True, False), bound.Use("w", 64, True, True)), ("a",)),
    ]
    made = iteration_of(works)
    assert made.launch_ns == (5.0, 7.0)
    weights, activation = made.items
    assert (weights.bytes, activation.bytes) == (64, 32)
    assert weights.events == (Event(0, True, False), Event(1, True, True))
    assert activation.events == (Event.death(0), Event(0, False, True), Event(1, True, False))


def test_every_planner_has_a_line_beside_the_bounds(
    deepum: Deepum, workload: Path, tmp_path: Path
) -> None:
    result = deepum(
        "plan", workload, "--gpu-memory", "192MiB", "--compare", "--json", tmp_path / "out.json"
    )
    assert result.returncode == 0, result.stderr
    head, _, *rows = result.stdout.splitlines()
    assert head.startswith("training on a100-40gb-g10, 192.0 MiB: ")
    assert [row.split()[0] for row in rows] == [planner.name for planner in PLANNERS]
    kept = json.loads((tmp_path / "out.json").read_text())
    for one in kept["planners"].values():
        assert one["ns"] >= kept["bound_ns"] * 0.9999
        assert one["peak_bytes"] <= kept["memory_bytes"] == 192 << 20
    times = {name: one["ns"] for name, one in kept["planners"].items()}
    assert times["search"] <= times["linear"] <= min(times["belady"], times["g10"])


def test_progress_says_each_better_plan_with_its_bound(deepum: Deepum, workload: Path) -> None:
    result = deepum("plan", workload, "--gpu-memory", "192MiB", "--planner", "ilp", "--progress")
    assert result.returncode == 0, result.stderr
    lines = result.stderr.splitlines()
    pattern = r"ilp: \d+\.\d s: (\d+\.\d) ms(, bound \d+\.\d ms, gap \d+\.\d %)?"
    found = [re.fullmatch(pattern, line) for line in lines]
    assert lines and all(found)
    times = [float(one[1]) for one in found if one is not None]
    assert times == sorted(times, reverse=True)
    assert f"{times[-1]:.1f}" in result.stdout
    quiet = deepum("plan", workload, "--gpu-memory", "192MiB", "--planner", "ilp")
    assert quiet.stderr == ""


def test_what_fits_needs_no_plan(deepum: Deepum, workload: Path) -> None:
    result = deepum("plan", workload)
    assert result.returncode == 0 and "an iteration fits; nothing is to be planned" in result.stdout


def test_a_card_too_small_for_a_launch_is_refused(deepum: Deepum, tmp_path: Path) -> None:
    training(tmp_path / "large", activations_mib=40)
    result = deepum("plan", tmp_path / "large", "--gpu-memory", "64MiB", "--planner", "belady")
    assert result.returncode == 2 and result.stdout == ""
    assert "a launch needs more than the card holds; give more --gpu-memory" in result.stderr


def test_an_unknown_workload_and_machine_are_refused(deepum: Deepum, workload: Path) -> None:
    assert deepum("plan", "no-such-workload").returncode == 2
    result = deepum("plan", workload, "--machine", "abacus")
    assert result.returncode == 2 and "abacus" in result.stderr


@pytest.mark.parametrize("name", ["BERT_Base-b256", "VIT-b1280"])
def test_g10s_workloads_take_what_they_compute(published: Path, name: str) -> None:
    steady = steady_iteration(load(str(published / name), None, False), "a100-40gb-g10")
    problem = Problem(steady.iteration, steady.link)
    found = BY_NAME["linear"]().best(problem, Limits(60.0))
    assert found is not None and found.ns <= 1.003 * steady.iteration.compute_ns
