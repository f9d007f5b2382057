"""What happens in a replay, transfer by transfer: it adds up to what the replay counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from random_problems import random_problem

from deepum.planners import Event, Item, Iteration, Link, Problem
from deepum.planners.problem import NOT_COPIED, Plan

SEEDS = range(40)


def plans(problem: Problem) -> list[Plan]:
    found = problem.belady(), problem.relieve_pressure(), problem.evict_all()
    return [plan for plan in found if plan is not None and np.isfinite(problem.replay(plan).ns)]


def test_a_small_case_to_the_nanosecond() -> None:
    """Each of two items leaves behind the launch that changes it, and makes the other's room."""
    first, second = (Event(launch, reads=True, writes=True) for launch in (0, 1))
    made = Problem(
        Iteration((10.0, 10.0), (Item(200, (first,)), Item(100, (second,)))), Link(250, 1.0, 1.0)
    )
    plan = made.evict_all()
    assert made.transfers(plan).tolist() == [
        (0.0, 100.0, 1, 1),
        (100.0, 300.0, 0, 0),
        (310.0, 510.0, 0, 1),
        (510.0, 610.0, 1, 0),
    ]
    assert made.levels(plan).tolist() == [(0.0, 100), (100.0, 200), (510.0, 100)]
    assert made.replay(plan).ns == 620.0


@pytest.mark.parametrize("seed", SEEDS)
def test_bytes_are_those_that_the_replay_counts(seed: int) -> None:
    problem = random_problem(seed)
    for plan in plans(problem):
        replayed, moved = problem.replay(plan), problem.transfers(plan)
        began = moved[moved["start_ns"] >= 0]
        size = problem.item_bytes[began["item"]]
        assert size[began["out"] == 0].sum() == replayed.in_bytes
        assert size[began["out"] == 1].sum() == replayed.out_bytes


@pytest.mark.parametrize("seed", SEEDS)
def test_a_transfer_takes_its_time_and_one_direction_has_one_at_a_time(seed: int) -> None:
    problem = random_problem(seed)
    for plan in plans(problem):
        moved, ns = problem.transfers(plan), problem.replay(plan).ns
        rates = np.where(moved["out"] == 1, problem.link.out_gbps, problem.link.in_gbps)
        assert moved["end_ns"] - moved["start_ns"] == pytest.approx(
            problem.item_bytes[moved["item"]] / rates
        )
        for out in (0, 1):
            mine = moved[moved["out"] == out]
            assert (mine["start_ns"][1:] >= mine["end_ns"][:-1]).all()
            assert (mine["start_ns"] < ns).all() and (mine["end_ns"] > 0).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_no_more_is_taken_than_there_is_and_a_launch_has_what_it_uses(seed: int) -> None:
    problem = random_problem(seed)
    used = problem.occupancy(problem.evict_all())  # by the launch alone
    for plan in plans(problem):
        levels, replayed = problem.levels(plan), problem.replay(plan)
        assert levels["ns"][0] == 0 and (np.diff(levels["ns"]) > 0).all()
        assert levels["ns"][-1] < replayed.ns
        assert levels["bytes"].min() >= 0 and levels["bytes"].max() <= problem.link.memory_bytes
        starts = replayed.ends_ns - problem.iteration.launch_ns
        at = np.searchsorted(levels["ns"], starts + 1e-6, side="right") - 1
        assert (levels["bytes"][at] >= used).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_launches_keep_their_order_and_wait_for_what_comes(seed: int) -> None:
    problem = random_problem(seed)
    for plan in plans(problem):
        moved, replayed = problem.transfers(plan), problem.replay(plan)
        starts = replayed.ends_ns - problem.iteration.launch_ns
        assert (starts[1:] >= replayed.ends_ns[:-1] - 1e-6).all()
        assert replayed.stall_ns == pytest.approx(starts - np.r_[0.0, replayed.ends_ns[:-1]])
        ends = moved["end_ns"]
        for start, stall in zip(starts.tolist(), replayed.stall_ns.tolist(), strict=True):
            # What it waited for is a transfer that ends when it begins.
            assert stall < 1e-6 or np.isclose(ends, start).any()


def test_what_cannot_run_has_no_course() -> None:
    used = Event(0, reads=True)
    made = Problem(Iteration((1.0,), (Item(200, (used,)), Item(200, (used,)))), Link(300, 1.0, 1.0))
    assert len(made.transfers(made.evict_all())) == len(made.levels(made.evict_all())) == 0


def test_what_ends_gives_its_room_back() -> None:
    dead = Event(0, writes=True), Event.death(1)
    made = Problem(Iteration((10.0, 5.0, 5.0), (Item(200, dead),)), Link(250, 1.0, 1.0))
    assert made.levels(made.keep_all()).tolist() == [(0.0, 200), (10.0, 0)]
    assert len(made.transfers(made.keep_all())) == 0


def test_where_all_stays_nothing_moves_and_the_level_is_one() -> None:
    made = Problem(Iteration((5.0, 5.0), (Item(8, (Event(1, reads=True),)),)), Link(10, 1.0, 1.0))
    assert len(made.transfers(made.keep_all())) == 0
    assert made.levels(made.keep_all()).tolist() == [(0.0, 8)]


@pytest.mark.parametrize("seed", SEEDS)
def test_copies_ahead_begin_behind_the_write_and_before_the_content_leaves(seed: int) -> None:
    problem = random_problem(seed)
    for plan in plans(problem):
        copied = problem.replay(plan).copied_behind
        late = Problem(problem.iteration, replace(problem.link, copies_early=False))
        assert (late.replay(plan).copied_behind == NOT_COPIED).all()
        for number, gap in enumerate(problem.gaps):
            if copied[number] == NOT_COPIED:
                continue
            assert gap.writer is not None
            written = gap.writer % problem.launches
            left = [
                other.start - other.writer
                for index, other in enumerate(problem.gaps)
                if other.version == gap.version and plan[index] and other.writer is not None
            ]
            assert written <= copied[number] < written + min(left)
