"""`deepum simulate`: its table, its file, its errors; and what it says of G10's workloads where
they are at hand.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from small import training

from deepum.simulate.comparison import Comparison, compare
from deepum.simulate.policies import BY_NAME, DEFAULT
from deepum.simulate.steps import Step, most_come, period, repeated, steady
from deepum.simulate.workload import load

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    training(tmp_path / "training")
    return tmp_path / "training"


def test_the_table_has_a_line_a_policy(deepum: Deepum, workload: Path, tmp_path: Path) -> None:
    result = deepum("simulate", workload, "--gpu-memory", "192MiB", "--json", tmp_path / "out.json")
    assert result.returncode == 0, result.stderr
    head, columns, *rows = result.stdout.splitlines()
    assert head.startswith("training on a100-40gb-g10, 192.0 MiB, gated; lower bound ")
    assert columns.split()[:8] == [
        "ms/step",
        "faults",
        "in",
        "out",
        "of",
        "unlimited",
        "over",
        "on-demand",
    ]
    assert columns.split()[8:] == ["of", "bound", "of", "bound", "(UM)"]
    assert [row.split()[0] for row in rows] == list(DEFAULT)
    figures = json.loads((tmp_path / "out.json").read_text())
    policies = figures["policies"]
    assert (
        policies["unlimited"]["of_unlimited"]
        == policies["on-demand"]["speed_up_over_on_demand"]
        == 1
    )
    assert (
        policies["on-demand"]["step_ms"] > policies["deepum"]["step_ms"] >= figures["bound_ms"] > 0
    )
    assert (
        f"; lower bound {figures['bound_ms']:.1f} ms, of unified memory "
        f"{figures['kept_bound_ms']:.1f} ms; without copies"
    ) in head
    assert head.endswith(
        f" {figures['moving_bound_ms']:.1f} ms, {figures['kept_moving_bound_ms']:.1f} ms"
    )
    assert all(
        row.split()[-1] == f"{policies[row.split()[0]]['of_kept_bound']:.3f}" for row in rows
    )
    assert len(policies["deepum"]["steps_ms"]) == 7
    assert (
        policies["deepum"]["a_step"]["bytes_h2d"]
        > 0
        == policies["unlimited"]["a_step"]["bytes_h2d"]
    )


def test_the_bound_of_plans_is_between_that_of_unified_memory_and_what_a_planner_reaches(
    deepum: Deepum, workload: Path, tmp_path: Path
) -> None:
    small = (workload, "--gpu-memory", "192MiB", "--json", tmp_path / "out.json")
    result = deepum("simulate", *small, "--policy", "deepum", "--linear-bound")
    assert result.returncode == 0, result.stderr
    head, columns, row = result.stdout.splitlines()
    figures = json.loads((tmp_path / "out.json").read_text())
    least = figures["linear_bound_ms"]
    assert head.endswith(f"; of plans {least:.1f} ms") and columns.endswith("of bound (LP)")
    assert row.split()[-1] == f"{figures['policies']['deepum']['of_linear_bound']:.3f}"
    assert deepum("plan", *small, "--planner", "search").returncode == 0
    planned = json.loads((tmp_path / "out.json").read_text())["planners"]["search"]["ns"] / 1e6
    assert 0.99 * figures["kept_bound_ms"] <= least <= 1.0001 * planned


def test_where_all_fits_there_is_no_bound_of_plans(deepum: Deepum, workload: Path) -> None:
    result = deepum("simulate", workload, "--policy", "deepum", "--linear-bound")
    assert result.returncode == 0, result.stderr
    assert "of plans" not in result.stdout and "(LP)" not in result.stdout


def test_policies_steps_and_queue_are_chosen(
    deepum: Deepum, workload: Path, tmp_path: Path
) -> None:
    options = (
        "--policy",
        "deepum,lookahead-8",
        "--steps",
        "4",
        "--synchronise",
        "--launch-queue",
        "32",
        "--machine",
        "h200",
    )
    result = deepum(
        "simulate", workload, "--gpu-memory", "192MiB", *options, "--json", tmp_path / "out.json"
    )
    assert [row.split()[0] for row in result.stdout.splitlines()[2:]] == ["deepum", "lookahead-8"]
    assert json.loads((tmp_path / "out.json").read_text())["machine"] == "h200"


def test_what_does_not_fit_is_a_result(deepum: Deepum, workload: Path, tmp_path: Path) -> None:
    options = (
        "--policy",
        "lms,deepum",
        "--steps",
        "2",
        "--gpu-memory",
        "64MiB",
        "--json",
        tmp_path / "out.json",
    )
    result = deepum("simulate", workload, *options)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[2].split()[0] == "deepum"
    (name, cause) = result.stdout.splitlines()[3].split(maxsplit=1)
    assert name == "lms" and cause.startswith("does not fit: out of memory in step 1, after ")
    assert json.loads((tmp_path / "out.json").read_text())["policies"]["lms"] == {
        "does_not_fit": cause.removeprefix("does not fit: ")
    }
    result = deepum(
        "trace",
        "export",
        workload,
        "--policy",
        "lms",
        "--steps",
        "2",
        "--gpu-memory",
        "64MiB",
        "--output",
        tmp_path / "o.json",
    )
    assert result.returncode == 125
    assert result.stderr.startswith(
        "deepum: error: workload training: does not fit under lms: out of memory in step 1, after "
    )
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (("nowhere",), "nowhere: No such file or directory; "),
        ((".",), "has no kernels.csv and tensors.csv; "),
        (("training", "--policy", "luck"), "policy 'luck': is unknown; choose from on-demand, "),
        (("training", "--policy", ","), "--policy: is empty; "),
        (("training", "--machine", "abacus"), "machine 'abacus': "),
        (("training", "--gpu-memory", "much"), "--gpu-memory: 'much' is not a size; "),
        (("training", "--gpu-memory", "1KiB"), "out of range; give 64MiB to 16TiB"),
        (("training", "--steps", "0"), "--steps"),
        (
            ("training", "--steps", "4", "--warm-up", "4"),
            "5 steps leave none behind a warm-up of 4; make at least 6, ",
        ),
        (("training/kernels.csv",), "not an event log; record it anew"),
        (("training/kernels.csv", "--steps", "3"), "is no single iteration; "),
    ],
)
def test_what_cannot_be_used_is_one_line(
    deepum: Deepum, workload: Path, arguments: tuple[str, ...], cause: str
) -> None:
    result = deepum("simulate", *arguments, cwd=workload.parent)
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("deepum: error: ")
    assert cause in result.stderr


def test_a_file_that_cannot_be_written_is_said(deepum: Deepum, workload: Path) -> None:
    result = deepum("simulate", workload, "--steps", "1", "--json", workload / "no" / "out.json")
    assert result.returncode == 125
    assert "no/out.json: No such file or directory; name a file" in result.stderr


def test_steps_that_count_are_those_in_the_middle() -> None:
    made = [Step(float(i), 1, {}) for i in range(7)]
    assert [step.ns for step in steady(made)] == [3, 4, 5]
    assert [step.ns for step in steady(made[:3])] == [1, 2]
    assert [step.ns for step in steady(made[:1])] == [0]
    assert [step.ns for step in steady(made, 4)] == [4, 5]


def test_what_counts_begins_behind_the_warm_up(
    deepum: Deepum, workload: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.json"
    done = deepum(
        "simulate",
        workload,
        "--policy",
        "deepum",
        "--steps",
        "6",
        "--warm-up",
        "1",
        "--gpu-memory",
        "192MiB",
        "--json",
        output,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(output.read_text())
    of = found["policies"]["deepum"]
    assert found["warm_up"] == 1
    assert of["step_ms"] == pytest.approx(sum(of["steps_ms"][1:-1]) / len(of["steps_ms"][1:-1]))
    assert of["step_ms"] != pytest.approx(sum(of["steps_ms"][3:-1]) / len(of["steps_ms"][3:-1]))


def test_the_period_of_launches_is_found_behind_a_beginning_and_before_an_end() -> None:
    layers = [layer for _ in range(40) for layer in (1, 2, 3)]
    step = [10, *layers, 11, *reversed(layers), 12, 13]
    ends = [2 + len(step) * i for i in range(1, 7)]
    assert period([90, 91, *step * 6, 92, 93], [1, 2, *ends, ends[-1] + 1, ends[-1] + 2]) == len(
        step
    )
    assert period([90, 91, *step * 6, 92, 93], [1, 2, *ends]) == len(step), (
        "not the layers, which repeat more often"
    )
    assert period(
        [90, 91, *step * 6], [1, 2, *(end + within for end in ends for within in (-30, 0))]
    ) == len(step)
    alike = [1, 2] * 12
    assert period([90, *alike * 6], [1, 3, 5, *(1 + 24 * i for i in range(1, 7))]) == len(alike), (
        "nobody waits for a layer"
    )
    assert period(list(range(100)), [10, 20, 30, 40, 50, 60]) is None
    assert period([1, 2] * 20, []) is None
    assert period([], []) is None


def test_a_step_of_several_iterations_is_told() -> None:
    """A program that waits only when it logs: its step is what lies between, with what the log
    itself launches.
    """
    iteration = [*range(100, 140), 7, 7]  # two launches alike
    assert most_come(iteration) == 1
    assert most_come([*iteration, *iteration, 1, 2, 3]) == 2
    assert most_come([*iteration * 10, 1, 2, 3]) == 10
    assert most_come([5, 6] * 12 + [*range(100, 140)]) == 1, "layers alone are not most of it"
    assert most_come([]) == 1
    assert repeated(1) is None and "come 10 times" in str(repeated(10))


# --- G10's workloads, as published

FIRST_MARK = {"BERT_Base-b256": 0.97, "VIT-b1280": 0.82, "ResNet152-b1280": 0.98}
# Of look-ahead 8 under the timing rule, without faults.
PROTOTYPE = {"BERT_Base-b256": 0.912, "VIT-b1280": 0.680, "ResNet152-b1280": 0.979}


@pytest.fixture(scope="module", params=list(FIRST_MARK))
def found(request: pytest.FixtureRequest, published: Path) -> Comparison:
    loaded = load(str(published / request.param), 5, False)
    return compare(loaded, loaded.machine, [BY_NAME[name] for name in DEFAULT])


def test_ours_is_near_unlimited_memory(found: Comparison) -> None:
    assert found.ratios("deepum")[0] >= FIRST_MARK[found.workload]


def test_ours_is_better_than_every_other(found: Comparison) -> None:
    assert all(
        found.rows["deepum"].ns <= found.rows[name].ns
        for name in ("on-demand", "deepum-paper", "lookahead-8")
    )


def test_the_look_ahead_is_what_the_timing_rule_says(found: Comparison) -> None:
    assert found.ratios("lookahead-8")[0] == pytest.approx(PROTOTYPE[found.workload], abs=0.02)


def test_nothing_is_below_the_bound(found: Comparison) -> None:
    assert found.bound_ns is not None
    assert found.moving_bound_ns is not None
    assert all(row.ns >= found.bound_ns * (1 - 1e-9) for row in found.rows.values())
    assert all(
        row.ns >= found.moving_bound_ns * (1 - 1e-9)
        for name, row in found.rows.items()
        if name != "unlimited"
    )
