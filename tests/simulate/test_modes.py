"""How deepum runs beside a program: in lock-step, free, and free with gates. All of them end; gates
give what lock-step gives.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from small import MIB, random_iteration, training
from test_discards import training as activations

from deepum.core import BlockRange
from deepum.simulate.mode import DECISION_LAG_NS, FREE, GATED, LOCK_STEP, MODES, Mode, mode_of
from deepum.simulate.policies import BY_NAME
from deepum.simulate.replay import Mark, Outcome, machine, replay
from deepum.trace import Trace, TraceWriter, g10, work

STEPS = 10
CARD = 160 * MIB
LATE = 2e7  # ns


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return g10.trace(training(tmp_path_factory.mktemp("modes") / "w"), STEPS)


def run(
    trace: Trace, mode: Mode, memory: int = CARD, queue: int = 1024, policy: str = "deepum"
) -> Outcome:
    return replay(
        trace,
        machine("v100-16gb", launch_queue=queue),
        BY_NAME[policy].settings(queue),
        memory,
        mode=mode,
    )


def steps(outcome: Outcome) -> list[Mark]:
    return [mark for mark in outcome.marks if mark.kind == "step"]


def later(outcome: Outcome, counter: str) -> float:
    """Of the second half of the steps, and their ns."""
    marks = steps(outcome)
    return marks[-1].counters[counter] - marks[STEPS // 2].counters[counter]


def later_ns(outcome: Outcome) -> float:
    marks = steps(outcome)
    return marks[-1].ns - marks[STEPS // 2].ns


def test_behind_gates_nothing_faults_and_steps_take_what_they_take_in_lock_step(
    trace: Trace,
) -> None:
    lock_step, free, gated = (run(trace, mode) for mode in (LOCK_STEP, FREE, GATED))
    assert later(lock_step, "faults") == later(gated, "faults") == 0 < later(free, "faults")
    assert later_ns(gated) == pytest.approx(later_ns(lock_step), rel=0.02)
    assert later_ns(free) > 1.05 * later_ns(lock_step)


def test_gates_cost_nothing_any_more_where_memory_is_short_no_longer() -> None:
    """Short launches, and the host's time for a step of them: each that waits at a gate, with a
    marker behind it, costs it as much again.
    """
    writer = TraceWriter()
    writer.device(16)
    for slot in range(2):
        writer.allocate(slot, 12)

    def step(slots: tuple[int, ...]) -> None:
        for slot, at in itertools.product(slots, range(150)):
            where = BlockRange(slot, at % 12, 1)
            access = work.Access(slot, work.READ | work.WRITE, at % 12 * 2 * MIB, 2 * MIB)
            writer.launch(1 + 150 * slot + at, [where], [access], 1e3, ends_step=at == 149)

    for _ in range(4):
        step((0, 1))
    writer.free(1)
    for _ in range(8):
        step((0,))
    made = writer.trace("gates")
    marks = {mode.name: steps(run(made, mode, 32 * MIB)) for mode in (GATED, FREE)}
    gated, free = (
        [after.ns - before.ns for before, after in itertools.pairwise(each)]
        for each in marks.values()
    )
    assert gated[-7] == pytest.approx(2 * free[-7], rel=0.01)
    assert gated[-1] == pytest.approx(free[-1], rel=0.01)


def test_late_decisions_cost_no_discards_behind_gates() -> None:
    """Whoever memory is handed out to waits until the mover has looked, but not for a daemon that
    takes too long.
    """
    settings = BY_NAME["deepum"].settings(1024)
    modes = [replace(mode, decision_lag_ns=5e5) for mode in (GATED, FREE)]
    gated, free = (
        replay(activations(), machine("v100-16gb"), settings, 32 * MIB, mode=mode) for mode in modes
    )
    assert gated.counters["bytes_discarded"] > 1.3 * free.counters["bytes_discarded"]
    assert gated.counters["discarded_uses_sure"] == free.counters["discarded_uses_sure"] == 0


def test_what_is_not_in_lock_step_depends_on_the_lag(trace: Trace) -> None:
    first, second = (run(trace, replace(FREE, decision_lag_ns=lag)).ns for lag in (0.0, LATE))
    assert first != second


def test_every_run_of_a_mode_is_the_same(trace: Trace) -> None:
    for mode in MODES.values():
        first, second = (run(trace, mode) for _ in range(2))
        assert (first.ns, first.counters) == (second.ns, second.counters)


@pytest.mark.parametrize("seed", range(12))
def test_all_work_of_random_programs_is_done(tmp_path: Path, seed: int) -> None:
    """Nothing waits for what waits for it, whatever the launch queue, the lag and the hand-over."""
    random = Random(seed)
    made = g10.trace(random_iteration(tmp_path / "w", seed), 6)
    expected = run(made, LOCK_STEP, 1 << 40).counters["kernels"]
    for mode, queue in itertools.product((FREE, GATED), (1, 16, 1024)):
        lag, handover = random.choice((0.0, 2e4, 1e6)), random.choice((2 * MIB, 64 * MIB))
        outcome = run(
            made, replace(mode, decision_lag_ns=lag, handover_bytes=handover), 24 * MIB, queue
        )
        assert outcome.counters["kernels"] == expected
        assert len(steps(outcome)) == 6 and all(mark.ns == mark.ns for mark in steps(outcome)), (
            "a launch never ended"
        )
        assert outcome.counters["discarded_uses_sure"] == 0


def test_where_all_fits_a_mode_costs_nothing(trace: Trace) -> None:
    times = [later_ns(run(trace, mode, 1 << 40)) for mode in MODES.values()]
    assert times == pytest.approx([times[0]] * 3, rel=1e-6)


def test_the_lag_goes_with_the_costs() -> None:
    assert [mode_of("free", costs).decision_lag_ns for costs in DECISION_LAG_NS] == [
        *DECISION_LAG_NS.values()
    ]
    assert mode_of("gated", None) == GATED


@pytest.mark.parametrize(
    "wrong", [{"decision_lag_ns": -1.0}, {"decision_lag_ns": float("nan")}, {"handover_bytes": MIB}]
)
def test_what_no_program_can_have_is_refused(trace: Trace, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="out of range"):
        run(trace, replace(FREE, **wrong))
