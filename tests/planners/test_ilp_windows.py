"""Large programs by windows of operations, the patterns of iterations, the thesis's heuristic, and
the planner made of all.
"""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from random_problems import random_problem, shortest
from state_sequences import BEFORE, least_stall, random_pattern

from deepum.planners import Event, Item, Iteration, Link, Problem
from deepum.planners.catalogue import BY_NAME
from deepum.planners.evaluation import evaluate
from deepum.planners.ilp.heuristic import Heuristic
from deepum.planners.ilp.pattern import Access, Pattern, Tensor
from deepum.planners.ilp.planner import Integer
from deepum.planners.ilp.spans import Rules, SpansProgram
from deepum.planners.ilp.thesis import Form, State, ThesisProgram
from deepum.planners.ilp.tracing import Grain, trace
from deepum.planners.ilp.windows import Window, Windows
from deepum.planners.paging import demand_paging
from deepum.planners.planner import Incumbent, Limits, Linear

READ, CHANGE, OVERWRITE = Access.READ, Access.CHANGE, Access.OVERWRITE
ONE = Link(memory_bytes=100, in_gbps=1.0, out_gbps=1.0)
SEEDS = range(40)


def test_windows_are_never_worse_than_their_start_nor_their_bound_above_the_optimum() -> None:
    better = checked = 0
    for seed in range(30):
        pattern = random_pattern(seed, operations=8)
        states = Heuristic(pattern).states()
        if states is None:
            continue
        least = least_stall(pattern, own_sums=True, drops_dirty=False)
        for versions in (False, True):
            program = ThesisProgram(pattern, Form(versions=versions))
            relaxed = program.relaxed(10.0)
            assert relaxed is not None
            windows = Windows(program, Window(operations=4))
            start = program.start(states)
            found = list(windows.improve(start, Limits(20.0), relaxed.bound_ns))
            costs = [one.cost_ns for one in found]
            assert costs and costs == sorted(costs, reverse=True)
            assert relaxed.bound_ns <= least + 1e-3 and found[-1].bound_ns <= least + 1e-3
            assert found[-1].stall_ns >= least - 1e-3
            checked += 1
            better += found[-1].stall_ns < found[0].stall_ns - 1e-3
    assert checked > 10 and better >= 2


def test_a_window_of_all_operations_finds_the_optimum() -> None:
    for seed in SEEDS:
        pattern = random_pattern(seed)
        states = Heuristic(pattern).states()
        if states is None:
            continue
        program = ThesisProgram(pattern)
        windows = Windows(program, Window(operations=len(pattern)))
        *_, last = windows.improve(program.start(states), Limits(30.0))
        least = least_stall(pattern, own_sums=True, drops_dirty=False)
        assert last.stall_ns == pytest.approx(least, abs=1e-3)
        assert last.optimal


def test_what_is_near_the_relaxation_is_a_solution() -> None:
    found = 0
    for seed in SEEDS:
        pattern = random_pattern(seed)
        program = SpansProgram(pattern, Rules(parts=True, moved=1e-3, beyond=1.0))
        near = Windows(program).relax_and_fix(Limits(10.0))
        whole = program.solve(10.0)
        if near is not None and whole is not None:
            found += 1
            assert near.bound_ns <= whole.cost_ns + 1e-3
            assert near.cost_ns >= whole.cost_ns - 1e-3
    assert found > 10


def test_a_start_that_cannot_be_gives_nothing() -> None:
    pattern = Pattern((1.0,) * 6, (Tensor(60, {0: READ}), Tensor(60, {3: READ})), ONE)
    program = ThesisProgram(pattern)
    start = program.start([[State.STAY_CLEAN] * 6] * 2)  # 120 bytes in 100
    assert not list(Windows(program).improve(start, Limits(5.0)))


def test_the_heuristics_states_work_and_are_no_better_than_the_optimum() -> None:
    checked = equal = 0
    for seed in range(80):
        pattern = random_pattern(seed, operations=8)
        states = Heuristic(pattern).states()
        if states is None:
            continue
        checked += 1
        for at in states:
            assert all(at[o - 1].value in BEFORE[at[o].value] for o in range(8))
        program = ThesisProgram(pattern)
        solved = program.solve(10.0, fixed=program.start(states))
        assert solved is not None
        whole = program.solve(60.0)
        assert whole is not None and solved.stall_ns >= whole.stall_ns - 1e-3
        equal += solved.stall_ns <= whole.stall_ns + 1e-3
    assert checked > 15 and equal > checked // 3


def test_the_heuristic_copies_once_behind_a_write() -> None:
    # Step 2: read only since the last swap-out, the tensor is out without another.
    pattern = Pattern((10.0,) * 12, (Tensor(60, {0: CHANGE, 6: READ}), Tensor(60, {3: READ})), ONE)
    pattern = Pattern(
        pattern.durations_ns, (pattern.tensors[0], Tensor(60, {3: READ, 9: READ})), ONE
    )
    states = Heuristic(pattern).states()
    assert states is not None
    assert states[0].count(State.SWAP_OUT) == 1 and states[0].count(State.SWAP_IN) == 2
    assert State.SWAP_OUT not in states[1]  # nothing writes it


def test_the_heuristic_keeps_the_largest_first() -> None:
    # Step 3: one of both fits beside the third at operation 4.
    tensors = (Tensor(20, {0: READ}), Tensor(50, {0: READ}), Tensor(45, {4: READ}))
    states = Heuristic(Pattern((100.0,) * 8, tensors, ONE)).states()
    assert states is not None
    assert State.OUT in states[0] and State.OUT not in states[1]


def test_the_heuristic_moves_transfers_to_where_they_overlap() -> None:
    # Step 4: operation 2 hides the copy, operation 6 the fetch; those next to the accesses do not.
    tensors = (Tensor(60, {0: CHANGE}), Tensor(60, {4: READ}))
    durations = (0.0, 0.0, 60.0, 60.0, 0.0, 60.0, 60.0, 0.0)
    states = Heuristic(Pattern(durations, tensors, Link(120, 1.0, 1.0))).states()
    assert states is not None  # both fit
    tight = Pattern(
        (0.0, 0.0, 60.0, 60.0, 0.0, 0.0, 60.0, 0.0, 0.0), tensors[:1], Link(70, 1.0, 1.0)
    )
    reserved = Pattern(tight.durations_ns, tight.tensors, tight.link, (0, 0, 0, 0, 60, 0, 0, 0, 0))
    states = Heuristic(reserved).states()
    assert states is not None
    assert states[0][2] is State.SWAP_OUT or states[0][3] is State.SWAP_OUT
    assert states[0][6] is State.SWAP_IN


def test_the_heuristic_planner_copies_only_what_it_must_and_overlaps_it() -> None:
    # Steps 1, 2 and 4, in the replay: of what is only written nothing is fetched, of what the host
    # has nothing is copied, and both transfers go on behind launches 1 and 3.
    written, read = Item(60, (Event(0, writes=True),)), Item(60, (Event(2, reads=True),))
    problem = Problem(Iteration((200.0,) * 4, (written, read)), ONE)
    found = BY_NAME["heuristic"]().best(problem, Limits(5.0))
    assert found is not None and found.plan.all()
    result = problem.replay(found.plan)
    assert (result.in_bytes, result.out_bytes) == (60, 60)
    assert result.ns == pytest.approx(800.0)
    changed = Item(60, (Event(0, reads=True, writes=True),))
    problem = Problem(Iteration((200.0,) * 4, (changed, read)), ONE)
    result = problem.replay(problem.evict_all())
    assert (result.in_bytes, result.out_bytes) == (120, 60)


def test_the_heuristic_planner_copies_once_behind_a_write() -> None:
    changed = Item(60, (Event(0, reads=True, writes=True), Event(2, reads=True)))
    others = Item(60, (Event(1, reads=True), Event(3, reads=True)))
    problem = Problem(Iteration((200.0,) * 4, (changed, others)), ONE)
    found = BY_NAME["heuristic"]().best(problem, Limits(5.0))
    assert found is not None and found.plan.all()
    result = problem.replay(found.plan)
    assert (result.in_bytes, result.out_bytes) == (240, 60)


def test_the_heuristic_planner_keeps_the_largest_first() -> None:
    # Step 3: the 60 bytes do not fit at launch 1, and at launch 2 only one of the others does.
    items = (
        Item(15, (Event(1, reads=True),), 15),
        Item(30, (Event(1, reads=True),), 30),
        Item(60, (Event(2, reads=True),), 60),
    )
    for order in ((0, 1, 2), (2, 1, 0)):
        chosen = tuple(items[index] for index in order)
        problem = Problem(Iteration((100.0,) * 4, chosen), ONE)
        found = BY_NAME["heuristic"]().best(problem, Limits(5.0))
        assert found is not None
        kept = {
            int(problem.item_bytes[problem.gaps[gap].item])
            for gap in range(len(problem))
            if not found.plan[gap]
        }
        assert kept == {30}


def test_demand_paging_adds_up_what_misses() -> None:
    items = Item(60, (Event(0, reads=True, writes=True),)), Item(60, (Event(2, reads=True),))
    problem = Problem(Iteration((10.0,) * 4, items), ONE)
    # In: both; out: what was written.
    assert demand_paging(problem) == pytest.approx(40.0 + 120.0 + 60.0)
    fits = Problem(Iteration((10.0,) * 4, items), Link(120, 1.0, 1.0))
    assert demand_paging(fits) == pytest.approx(40.0)
    dead = Item(60, (Event(0, writes=True), Event.death(1)))
    assert demand_paging(Problem(Iteration((10.0,) * 4, (dead, items[1])), ONE)) == pytest.approx(
        40.0 + 60.0
    )
    small = Problem(Iteration((10.0,), (Item(200, (Event(0, reads=True),)),)), ONE)
    assert math.isinf(demand_paging(small))


def test_launches_become_operations() -> None:
    events = (Event(0, writes=True), Event(1, reads=True), Event(4, reads=True), Event.death(5))
    item, other = Item(8, events), Item(30, (Event(3, reads=True, writes=True),))
    problem = Problem(Iteration((10.0,) * 6, (item, other)), Link(100, 1.0, 1.0))
    plan = problem.keep_all()
    ends = problem.replay(plan).ends_ns
    fine = trace(problem, plan, ends, Grain(operations=6)).pattern
    assert fine.tensors[0].accesses == {0: OVERWRITE, 1: READ, 4: READ}
    assert fine.tensors[0].deaths == {4: 5}
    coarse = trace(problem, plan, ends, Grain(operations=3))
    assert coarse.pattern.durations_ns == (20.0,) * 3
    assert coarse.pattern.tensors[0].accesses == {0: OVERWRITE, 2: READ}
    assert coarse.pattern.tensors[1].accesses == {1: CHANGE}
    large = trace(problem, plan, ends, Grain(operations=3, least_bytes=20)).pattern
    assert [one.bytes for one in large.tensors] == [30]
    assert large.reserved == (8, 8, 8)


@pytest.mark.parametrize("seed", range(12))
def test_a_pattern_of_single_launches_says_what_the_problem_does(seed: int) -> None:
    problem = random_problem(seed)
    plan = problem.belady()
    assert plan is not None
    traced = trace(problem, plan, problem.replay(plan).ends_ns, Grain(problem.launches))
    mine = sorted(gap for stretches in traced.gaps for gaps in stretches for gap in gaps)
    assert len(set(mine)) == len(mine)
    for tensor, stretches in enumerate(traced.gaps):
        for one, gaps in zip(traced.pattern.stretches(tensor), stretches, strict=True):
            for number in gaps:
                gap = problem.gaps[number]
                assert (gap.start, gap.end, gap.death) == (one.start, one.end, one.death)
                assert gap.fetches == one.fetches and gap.writer == one.writer
    assert traced.evicted(plan) == {
        (tensor, number): bool(plan[gaps[0]])
        for tensor, stretches in enumerate(traced.gaps)
        for number, gaps in enumerate(stretches)
    }


@pytest.mark.parametrize("seed", range(12))
def test_the_planner_is_never_worse_than_the_one_it_begins_with(seed: int) -> None:
    problem = random_problem(seed)
    linear, found = Linear().best(problem, Limits(5.0)), Integer().best(problem, Limits(5.0))
    assert linear is not None and found is not None
    best = shortest(problem)
    assert best - 1e-6 <= found.ns <= linear.ns
    assert found.bound_ns is None or found.bound_ns <= best * 1.0005


@pytest.mark.parametrize("seconds", [0.0, 0.3, 1.0])
def test_stopped_early_it_has_a_plan_that_fits(seconds: float) -> None:
    problem = random_problem(9, launches=60, items=80, most_gaps=400, memory=1500)
    began = time.monotonic()
    found = Integer().best(problem, Limits(seconds))
    took = time.monotonic() - began
    assert found is not None
    assert problem.occupancy(found.plan).max() <= problem.link.memory_bytes
    assert np.isfinite(problem.replay(found.plan).ns)
    assert took < seconds + 10  # a machine with other work may be late


def test_an_interrupt_leaves_the_best_so_far() -> None:
    problem = random_problem(9, launches=60, items=80, most_gaps=400, memory=1500)
    seen: list[Incumbent] = []

    def interrupt(seconds: float, found: Incumbent) -> None:
        assert seconds >= 0
        seen.append(found)
        raise KeyboardInterrupt

    result = evaluate(problem, "ilp", Limits(20.0), interrupt)
    assert result is not None and len(seen) == 1 and result.ns == seen[0].ns
