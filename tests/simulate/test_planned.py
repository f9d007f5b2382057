"""The policy that plans, in a replay: it moves no more than it must, and never ends worse."""

from __future__ import annotations

import pytest

from deepum.core.planned import Phase, PlannedPolicy
from deepum.errors import UsageError
from deepum.simulate.mode import FREE, GATED, LOCK_STEP, Mode
from deepum.simulate.planned import planning
from deepum.simulate.policies import BY_NAME
from deepum.simulate.replay import Outcome, machine, replay
from deepum.simulate.steps import steps
from deepum.simulate.workload import Workload, load

MACHINE = "v100-16gb"
STEPS = 26


@pytest.fixture(scope="module")
def workload() -> Workload:
    """Some hundred launches a step, which take half as much again as the card has."""
    return load("gpt2-small:batch=15,layers=4", STEPS, False, MACHINE)


def run(workload: Workload, name: str, memory: int, mode: Mode) -> tuple[Outcome, PlannedPolicy]:
    policy, made = BY_NAME[name], list[PlannedPolicy]()
    preset = machine(MACHINE)
    watch = planning(policy, preset, made.append) if policy.plans else None
    outcome = replay(
        workload.trace,
        preset,
        policy.settings(int(preset.launch_queue)),
        memory,
        observe_faults=policy.observe_faults,
        observe_times=policy.plans,
        watch=watch,
        mode=mode,
    )
    return outcome, (made[0] if made else None)  # type: ignore[return-value]


@pytest.mark.parametrize("mode", (GATED, LOCK_STEP), ids=str)
def test_a_plan_is_tried_and_the_last_steps_are_no_longer_than_without(
    workload: Workload, mode: Mode
) -> None:
    memory = 10 << 30
    without, _ = run(workload, "deepum", memory, mode)
    found, policy = run(workload, "planned", memory, mode)
    assert policy.outcomes, policy.phase
    assert policy.phase in (Phase.FOLLOWING, Phase.STOPPED)
    assert all(one.before_us and (one.with_us or one.reason) for one in policy.outcomes)
    assert any(one.kept for one in policy.outcomes) == (policy.phase is Phase.FOLLOWING)
    before, after = steps(without, workload.trace)[-2], steps(found, workload.trace)[-2]
    assert after.ns <= 1.02 * before.ns
    assert found.counters["faults"] <= without.counters["faults"] * 1.01 + 64


def test_nothing_is_planned_where_launches_do_not_wait_for_their_moves(workload: Workload) -> None:
    _, policy = run(workload, "planned", 10 << 30, FREE)
    assert policy.phase is Phase.STOPPED
    assert [one.reason for one in policy.outcomes] == ["launches do not wait for their moves"]


def test_times_are_of_launches_alone(workload: Workload) -> None:
    """What launches are said to take, without what they waited for, is what they take where all
    memory fits.
    """
    from deepum.planners import core_plans, times

    sums: list[float] = []
    seen = times.launch_ns

    def listen(*given: object) -> object:
        found = seen(*given)  # type: ignore[arg-type]
        sums.append(float(found.sum()))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core_plans, "launch_ns", listen)
        run(workload, "planned", 10 << 30, GATED)
    unlimited, _ = run(workload, "unlimited", 1 << 44, GATED)
    computing = steps(unlimited, workload.trace)[-2].ns
    assert sums and sums[0] == pytest.approx(computing, rel=0.02)


def test_nothing_is_planned_where_all_fits(workload: Workload) -> None:
    found, policy = run(workload, "planned", 1 << 44, GATED)
    without, _ = run(workload, "deepum", 1 << 44, GATED)
    assert policy.phase is Phase.LEARNING and not policy.outcomes
    assert found.ns == without.ns


def test_a_replay_that_is_watched_goes_as_one_that_is_not(workload: Workload) -> None:
    preset = machine(MACHINE)
    settings = BY_NAME["deepum"].settings(int(preset.launch_queue))
    looks = []
    watched = replay(
        workload.trace,
        preset,
        settings,
        10 << 30,
        keep_commands=True,
        watch=lambda core: lambda: looks.append(core.statistics().launches),
    )
    plain = replay(workload.trace, preset, settings, 10 << 30, keep_commands=True)
    assert watched == plain
    assert looks[-1] == plain.core.launches and looks == sorted(set(looks))


def test_the_policies_are_known_by_name() -> None:
    assert BY_NAME["planned"].plans and BY_NAME["planned-clean"].observe_faults
    with pytest.raises(UsageError):
        from deepum.simulate.policies import parse

        parse("planning")
