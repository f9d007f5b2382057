"""Planners on random iterations: what they plan fits, never takes less than the best plan of all,
and the relaxation is below that.
"""

from __future__ import annotations

import sys

import pytest
from random_problems import random_problem, shortest

from deepum.errors import DeepumError
from deepum.planners import Event
from deepum.planners import planner as planner_module
from deepum.planners.catalogue import PLANNERS
from deepum.planners.intervals import Relaxation
from deepum.planners.iteration import Item, Iteration, Link, merged
from deepum.planners.planner import Limits, Linear, Planner, Search
from deepum.planners.problem import Problem

SEEDS = range(12)


class Clock:
    """Time by the clock, of which the process gets a part."""

    def __init__(self) -> None:
        self.clock = self.worked = 100.0

    def monotonic(self) -> float:
        return self.clock

    def process_time(self) -> float:
        return self.worked

    def pass_by(self, seconds: float, share: float) -> None:
        self.clock += seconds
        self.worked += share * seconds


def test_a_busy_machine_leaves_a_planner_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(planner_module, "time", clock)
    limits = Limits(10.0)
    assert limits.left == limits.left_by_clock == 10.0
    clock.pass_by(20.0, 0.25)
    assert limits.left == pytest.approx(5.0) and limits.left_by_clock == pytest.approx(20.0)
    clock.pass_by(20.0, 0.25)
    assert limits.left == limits.left_by_clock == 0.0


def test_a_planner_ends_by_the_clock_on_a_machine_that_leaves_it_next_to_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(planner_module, "time", clock)
    limits = Limits(10.0)
    clock.pass_by(50.0, 0.01)
    assert limits.left == pytest.approx(9.5)
    assert limits.left_by_clock == pytest.approx(10.0), "no more than the clock's"
    clock.pass_by(10.0, 0.01)
    assert limits.left == limits.left_by_clock == 0.0


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("planner", PLANNERS, ids=lambda planner: planner.name)
def test_what_is_planned_fits_and_is_no_shorter_than_the_best(
    planner: type[Planner], seed: int
) -> None:
    problem = random_problem(seed)
    found = planner().best(problem, Limits(5.0))
    assert found is not None
    assert problem.occupancy(found.plan).max() <= problem.link.memory_bytes
    assert found.ns == problem.replay(found.plan).ns
    assert found.ns >= shortest(problem) - 1e-6


@pytest.mark.parametrize("seed", SEEDS)
def test_the_relaxation_is_below_every_plan(seed: int) -> None:
    problem = random_problem(seed)
    start = problem.belady()
    assert start is not None
    ends = problem.replay(start).ends_ns
    for intervals in (2, 4, problem.launches):
        relaxed = Relaxation(problem, ends, intervals).solve(10.0)
        assert relaxed is not None
        assert problem.iteration.compute_ns * 0.99 <= relaxed.ns <= shortest(problem) * 1.0005


def test_directions_that_slow_each_other_down_take_as_long_as_both_do_together() -> None:
    """Of eight items, written in turn, four stay: as much goes out as comes in."""
    size, launches = 1 << 21, 16
    items = tuple(
        Item(size, tuple(Event(at, True, True) for at in range(number, launches, 8)))
        for number in range(8)
    )
    problem = Problem(Iteration((1e4,) * launches, items), Link(4 * size, 16.0, 16.0, False))
    start = problem.belady()
    assert start is not None
    ends = problem.replay(start).ends_ns

    def bound(together: float) -> float:
        found = Relaxation(problem, ends, launches, together).solve(10.0)
        assert found is not None
        return found.ns

    assert bound(1.0) == pytest.approx(2 * bound(2.0), rel=0.02)
    assert bound(1.6) == pytest.approx(1.25 * bound(2.0), rel=0.02)


def test_the_search_finds_the_best_of_most_small_problems() -> None:
    found = 0
    for seed in SEEDS:
        problem = random_problem(seed)
        best = Search().best(problem, Limits(5.0))
        assert best is not None
        found += best.ns <= shortest(problem) + 1e-6
    assert found >= len(SEEDS) * 3 // 4


def test_incumbents_only_get_better() -> None:
    problem = random_problem(3, launches=40, items=40, most_gaps=200)
    for planner in (Linear(), Search()):
        times = [one.ns for one in planner.incumbents(problem, Limits(5.0))]
        assert times and times == sorted(times, reverse=True)


def test_the_same_seed_searches_the_same() -> None:
    problem = random_problem(5, launches=40, items=40, most_gaps=200)
    plan = problem.belady()
    assert plan is not None
    first, again = (problem.search(plan, tries=80, seed=7) for _ in range(2))
    assert (first == again).all()


def test_a_search_makes_a_poor_plan_better() -> None:
    problem = random_problem(8, launches=40, items=40, most_gaps=200)
    poor = problem.evict_all()
    found = problem.search(poor, tries=200)
    assert problem.replay(found).ns < problem.replay(poor).ns


def test_a_preset_is_evicted_or_kept_where_that_can_be() -> None:
    problem = random_problem(2, launches=40, items=40, most_gaps=200, memory=1000)
    plain = problem.belady()
    assert plain is not None
    kept = evicted = 0
    for gap in range(len(problem)):
        preset = problem.keep_all()
        preset[gap] = 2 if plain[gap] else 1
        made = problem.belady(preset=preset)
        if made is not None and plain[gap]:
            kept += not made[gap]
        elif made is not None:
            assert made[gap]
            evicted += 1
    assert evicted > 10 and kept > int(plain.sum()) // 2


def test_a_missing_solver_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(DeepumError, match=r"highspy is missing; install it with .*deepum\[plan\]"):
        Linear().best(random_problem(1), Limits(5.0))


def test_pieces_that_are_used_alike_are_one_item_cut_to_size() -> None:
    uses = (Event(0, reads=True), Event(3, writes=True))
    items = merged([(30, uses), (50, tuple(reversed(uses))), (8, [Event.death(1)])], 32)
    assert [item.bytes for item in items] == [26, 27, 27]
    assert all(item.events == uses and item.tensor_bytes == 80 for item in items)
