"""`deepum plan --output` and `deepum simulate --plan`: a plan that is followed from the start, or
refused with the reason.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from small import MIB, training

from deepum.core import Execute, Plan, PlannedKind, PlannedMove, PlanPoint, events, plan_files
from deepum.errors import DeepumError, UsageError
from deepum.planners.core_plans import core_plan, problem_of
from deepum.planners.outline import Outline, Provenance
from deepum.simulate import given_plans, recorded
from deepum.simulate.iterations import steady_iteration
from deepum.simulate.policies import BY_NAME
from deepum.simulate.policy_run import run
from deepum.simulate.workload import load

Deepum = Callable[..., "subprocess.CompletedProcess[str]"]
MEMORY = 192 * MIB
MACHINE = "a100-40gb-g10"


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    training(tmp_path / "training")
    return tmp_path / "training"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """A plan of it."""
    folder = tmp_path_factory.mktemp("made") / "training"
    training(folder)
    iteration, problem = problem_of(recorded.recorded(str(folder), None, MACHINE, MEMORY))
    gaps = problem.belady()
    assert gaps is not None
    return core_plan(iteration, problem, gaps, Provenance("belady", 0.0))


@pytest.fixture
def file(made: Plan, tmp_path: Path) -> Path:
    """The same in a file."""
    file = tmp_path / "plan"
    file.write_bytes(plan_files.encode(made))
    return file


def test_the_plan_is_followed_from_the_start(file: Path, workload: Path) -> None:
    plan = given_plans.read_plan(str(file))
    steps = 5
    loaded = load(str(workload), steps, False)
    (policy,) = given_plans.following([BY_NAME["planned"]], str(file))
    found = run(loaded, MACHINE, policy, MEMORY)
    assert found.core.planned_launches >= (steps - 1) * len(plan.launches)
    assert run(loaded, MACHINE, BY_NAME["planned"], MEMORY).core.planned_launches == 0


def test_launches_take_what_the_model_has_for_them(made: Plan, workload: Path) -> None:
    outline = Outline.decode(made.outline)
    steady = steady_iteration(load(str(workload), None, False), MACHINE, MEMORY)
    assert outline.iteration.compute_ns == pytest.approx(steady.iteration.compute_ns, abs=2e3)
    assert sorted(outline.iteration.launch_ns) == pytest.approx(
        sorted(steady.iteration.launch_ns), abs=1e3
    )
    assert outline.problem().replay(outline.plan).ns >= 0.999 * steady.bound_ns


def test_each_launch_has_its_own_time(made: Plan, workload: Path) -> None:
    loaded = load(str(workload), 3, False)
    unlimited = run(loaded, MACHINE, BY_NAME["unlimited"], keep_launches=True)
    launches = (event for event in events(loaded.trace.events) if isinstance(event, Execute))
    took = {launch.sequence: launch.kernel_ns for launch in unlimited.launches}
    by_hash = {event.execution_hash: took[event.sequence] for event in launches}
    assert len(set(by_hash.values())) > 2
    assert Outline.decode(made.outline).iteration.launch_ns == pytest.approx(
        [by_hash[one] for one in made.launches], abs=1e3
    )


def test_the_best_of_all_planners_is_written(deepum: Deepum, workload: Path) -> None:
    file = workload.parent / "best"
    result = deepum("plan", workload, "--gpu-memory", "192MiB", "--compare", "--output", file)
    assert result.returncode == 0, result.stderr
    assert "deepum report" in result.stderr and f"{file}: " in result.stdout.splitlines()[-1]
    times = {row.split()[0]: float(row.split()[1]) for row in result.stdout.splitlines()[2:-1]}
    outline = Outline.decode(given_plans.read_plan(str(file)).outline)
    assert times[outline.made.planner] == min(times.values())
    assert outline.made.bound_ns is not None and outline.made.linear_bound_ns is not None
    assert (outline.made.workload, outline.made.machine) == ("training", MACHINE)


def test_what_is_simulated_with_a_plan_says_the_same_of_other_policies(
    deepum: Deepum, file: Path, workload: Path
) -> None:
    common = "simulate", workload, "--gpu-memory", "192MiB", "--policy"
    with_plan = deepum(*common, "deepum,planned", "--plan", file)
    without = deepum(*common, "deepum,planned")
    assert with_plan.returncode == without.returncode == 0, with_plan.stderr
    rows = [result.stdout.splitlines() for result in (with_plan, without)]
    assert rows[0][2] == rows[1][2], "deepum follows no plan"
    assert rows[0][3] != rows[1][3], "planned does"


def refusal(file: Path, workload: Path, memory: int) -> str:
    (policy,) = given_plans.following([BY_NAME["planned"]], str(file))
    with pytest.raises(UsageError) as refused:
        run(load(str(workload), 4, False), MACHINE, policy, memory)
    return refused.value.line


def test_a_plan_that_cannot_be_carried_out_is_refused_with_the_reason(
    file: Path, workload: Path, tmp_path: Path
) -> None:
    assert "on the card, which has 128.0 MiB; make one for that" in refusal(
        file, workload, 128 * MIB
    )
    training(tmp_path / "other", layers=7)
    assert "the plan is of another program: other never launches its" in refusal(
        file, tmp_path / "other", MEMORY
    )
    plan = plan_files.decode(file.read_bytes())
    made = Outline.decode(plan.outline)
    small = replace(made, link=replace(made.link, memory_bytes=2 * MIB)).encode()
    file.write_bytes(plan_files.encode(replace(plan, outline=small)))
    assert "it needs more memory than it was made for; make it anew" in refusal(
        file, workload, MEMORY
    )
    file.write_bytes(plan_files.encode(replace(plan, outline=b"no outline")))
    assert "its outline makes no sense" in refusal(file, workload, MEMORY)


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (None, "No such file or directory; name what"),
        (b"nothing", "not a plan; name what"),
        (
            plan_files.encode(
                Plan((1,), (PlannedMove(4, PlanPoint.AFTER_LAUNCH, PlannedKind.EVICT, 1, 0, 1),))
            ),
            "a move of the plan is of no launch, of no block, or out of order; name what",
        ),
    ],
)
def test_a_file_that_is_no_plan_is_refused(
    deepum: Deepum, workload: Path, data: bytes | None, cause: str
) -> None:
    file = workload.parent / "broken"
    if data is not None:
        file.write_bytes(data)
    result = deepum("simulate", workload, "--policy", "planned", "--plan", file)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"deepum: error: plan {file}: {cause}")


def test_a_plan_without_a_policy_that_follows_it_is_refused(
    deepum: Deepum, file: Path, workload: Path
) -> None:
    result = deepum("simulate", workload, "--policy", "deepum", "--plan", file)
    assert result.returncode == 2 and "add one of them" in result.stderr


def test_an_iteration_that_comes_too_seldom_is_not_recorded(
    workload: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert recorded.request(load(str(workload), 2, False), MACHINE, MEMORY) is None
    monkeypatch.setattr(recorded, "_STEPS", (2,))
    with pytest.raises(DeepumError, match="training: no iteration repeats itself for long enough"):
        recorded.recorded(str(workload), None, MACHINE, MEMORY)


def test_what_fits_or_cannot_be_written_leaves_no_file(deepum: Deepum, workload: Path) -> None:
    file = workload.parent / "none"
    result = deepum("plan", workload, "-o", file)
    assert (
        result.returncode == 0 and "nothing is to be planned" in result.stdout and not file.exists()
    )
    result = deepum(
        "plan", workload, "--gpu-memory", "192MiB", "--planner", "belady", "-o", "no/such"
    )
    assert result.returncode == 125 and "no/such: No such file or directory" in result.stderr
