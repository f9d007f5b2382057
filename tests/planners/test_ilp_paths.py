"""Schedules of the thesis's form by shortest paths, against going through all states."""

from __future__ import annotations

from dataclasses import replace

import pytest
from state_sequences import least_stall, random_pattern

from deepum.planners import Link
from deepum.planners.ilp.heuristic import Heuristic
from deepum.planners.ilp.paths import Paths
from deepum.planners.ilp.pattern import Access, Pattern, Tensor
from deepum.planners.ilp.thesis import Form, State, ThesisProgram
from deepum.planners.planner import Limits

FORMS = pytest.mark.parametrize(
    "form",
    [Form(own, False, drops) for own in (True, False) for drops in (True, False)],
    ids=lambda form: f"own-sums-{form.own_sums}-drops-{form.drops_dirty}",
)


@FORMS
def test_schedules_are_the_programs_and_most_are_the_best_there_is(form: Form) -> None:
    checked = best = 0
    for seed in range(40):
        pattern = random_pattern(seed)
        states = Heuristic(pattern).states()
        if states is None:
            continue
        paths = Paths(pattern, states, form)
        found = list(paths.improve(Limits(0.1, seed)))
        assert found == sorted(found, reverse=True)
        assert paths.stall_ns() == pytest.approx(found[-1], abs=1e-6)
        program = ThesisProgram(pattern, form)
        solved = program.solve(10.0, fixed=program.start(paths.states()))
        assert solved is not None, "the program does not allow these states"
        assert solved.stall_ns == pytest.approx(found[-1], abs=1e-3)
        least = least_stall(pattern, form.own_sums, form.drops_dirty)
        assert found[-1] >= least - 1e-3
        checked += 1
        best += found[-1] <= least + 1e-3
    assert checked > 10 and best >= 0.9 * checked


@FORMS
def test_the_path_of_a_single_tensor_is_the_best_at_once(form: Form) -> None:
    """As soon as something else has no room left for it at an operation."""
    checked = 0
    for seed in range(40):
        pattern = random_pattern(seed, operations=7, tensors=1)
        one = pattern.tensors[0]
        at = next(o for o in range(7) if o not in one.accesses and (o + 1) % 7 not in one.accesses)
        reserved = tuple(1 if operation == at else 0 for operation in range(7))
        tight = replace(
            pattern, link=replace(pattern.link, memory_bytes=one.bytes), reserved=reserved
        )
        states = Heuristic(tight).states()
        if states is None:
            continue
        program = ThesisProgram(tight, form)
        solved = program.solve(10.0)
        assert solved is not None and solved.optimal
        first = next(Paths(tight, states, form).improve(Limits(5.0)))
        assert first == pytest.approx(solved.stall_ns, abs=1e-3)
        checked += 1
    assert checked > 10


def test_what_the_program_gave_up_takes_no_memory() -> None:
    """The swap-in moves to the longer operation, at which the other tensor is dead."""
    first = Tensor(60, {0: Access.OVERWRITE, 1: Access.READ}, {1: 2})
    second = Tensor(60, {4: Access.READ})
    pattern = Pattern((10.0, 10.0, 100.0, 10.0, 10.0, 10.0), (first, second), Link(60, 1.0, 1.0))
    out, here = State.OUT, State.STAY_CLEAN
    states = [[State.STAY_DIRTY] * 6, [out, out, out, State.SWAP_IN, here, out]]
    paths = Paths(pattern, states)
    assert paths.stall_ns() == 50
    assert list(paths.improve(Limits(5.0))) == [0.0]
    assert paths.states()[1][2:5] == [State.SWAP_IN, here, here]


def test_directions_have_their_own_sums_or_one() -> None:
    tensors = (Tensor(60, {0: Access.CHANGE}), Tensor(60, {3: Access.READ}))
    pattern = Pattern((10.0,) * 4, tensors, Link(200, 1.0, 1.0))
    states = [
        [State.STAY_DIRTY, State.SWAP_OUT, State.OUT, State.SWAP_IN],
        [State.OUT, State.SWAP_IN, State.STAY_CLEAN, State.STAY_CLEAN],
    ]
    assert Paths(pattern, states, Form(own_sums=True)).stall_ns() == 50 + 50
    assert Paths(pattern, states, Form(own_sums=False)).stall_ns() == 110 + 50


def test_the_best_is_kept_where_a_worse_one_was_gone_on_from() -> None:
    for seed in range(8):
        pattern = random_pattern(seed, operations=24, tensors=12)
        short = tuple(ns / 4 for ns in pattern.durations_ns)  # so that all of them wait
        pattern = replace(pattern, durations_ns=short)
        states = Heuristic(pattern).states()
        if states is not None:
            paths = Paths(pattern, states)
            *_, best = paths.improve(Limits(0.5, seed))
            assert paths.stall_ns() == pytest.approx(best, abs=1e-6)


def test_no_time_leaves_a_schedule() -> None:
    pattern = random_pattern(1)
    states = Heuristic(pattern).states()
    assert states is not None
    paths = Paths(pattern, states)
    assert list(paths.improve(Limits(0.0))) == [paths.stall_ns()]
    assert paths.states() == states
