"""Gaps of an iteration, and what a plan takes: small cases whose times are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from deepum.planners import Event, Item, Iteration, Link, Problem

ONE = Link(memory_bytes=300, in_gbps=1.0, out_gbps=1.0)  # a byte takes a nanosecond each way


def read(launch: int) -> Event:
    return Event(launch, reads=True)


def write(launch: int) -> Event:
    return Event(launch, writes=True)


def change(launch: int) -> Event:
    return Event(launch, reads=True, writes=True)


def problem(launch_ns: list[float], *items: Item, link: Link = ONE) -> Problem:
    return Problem(Iteration(tuple(launch_ns), items), link)


def test_gaps_reach_into_the_next_iteration_and_know_their_writer() -> None:
    made = problem([1.0] * 4, Item(8, (change(1), read(3))))
    first, second = made.gaps
    assert (first.start, first.end, first.writer, first.death) == (1, 3, 1, None)
    assert (second.start, second.end, second.writer) == (3, 5, 1)
    assert first.version == second.version and first.fetches and second.fetches


def test_content_that_is_read_before_its_write_is_that_of_the_iteration_before() -> None:
    made = problem([1.0] * 4, Item(8, (read(0), change(2), read(3))))
    before, after, wrapping = made.gaps
    assert (before.writer, after.writer, wrapping.writer) == (-2, 2, 2)
    assert before.version == after.version == wrapping.version


def test_content_that_nothing_writes_has_no_writer() -> None:
    (gap,) = problem([1.0] * 4, Item(8, (read(2),))).gaps
    assert gap.writer is None and (gap.start, gap.end) == (2, 6)


def test_content_that_ends_is_not_fetched() -> None:
    made = problem([1.0] * 4, Item(8, (write(0), read(1), Event.death(2))))
    live, dead = made.gaps
    assert (live.death, live.fetches) == (None, True)
    assert (dead.start, dead.death, dead.end, dead.fetches) == (1, 2, 4, False)


def test_what_fits_takes_what_it_computes() -> None:
    made = problem([10.0, 20.0], Item(100, (read(0),)), Item(100, (change(1),)))
    result = made.replay(made.keep_all())
    assert (result.ns, result.in_bytes, result.out_bytes) == (30.0, 0, 0)
    assert list(result.ends_ns) == [10.0, 30.0]
    assert list(made.occupancy(made.keep_all())) == [200, 200]


def test_an_eviction_of_what_the_host_has_moves_in_one_direction() -> None:
    # The item is away from the end of launch 0 to launch 0 of the next iteration, and comes back
    # while the other launches run.
    made = problem([10.0, 500.0], Item(100, (read(0),)), Item(250, (read(1),)))
    plan = made.evict_all()
    result = made.replay(plan)
    assert (result.in_bytes, result.out_bytes) == (350, 0)
    # Neither fits beside the other: each launch waits for its own.
    assert result.ns == pytest.approx(100 + 10 + 250 + 500)


def test_what_was_written_leaves_when_its_copy_is_done() -> None:
    made = problem([10.0, 10.0], Item(200, (change(0),)), Item(200, (change(1),)))
    result = made.replay(made.evict_all())
    assert (result.in_bytes, result.out_bytes) == (400, 400)
    assert result.ns == pytest.approx(2 * (200 + 200 + 10))
    assert result.stall_ns.sum() == pytest.approx(result.ns - 20)


def test_a_copy_ahead_of_the_eviction_hides_behind_launches() -> None:
    # Item 0 is written by launch 0, used until launch 1, and leaves for item 1 at launch 2.
    link = Link(memory_bytes=200, in_gbps=1.0, out_gbps=1.0)
    items = Item(200, (change(0), read(1))), Item(200, (read(2),))
    made = problem([10.0, 300.0, 10.0], *items, link=link)
    moving = problem([10.0, 300.0, 10.0], *items, link=replace(link, copies_early=False))
    plan = made.keep_all()
    plan[[i for i, gap in enumerate(made.gaps) if gap.start in (1, 2)]] = 1
    early, late = made.replay(plan), moving.replay(plan)
    assert early.ns == pytest.approx(10 + 300 + 200 + 10 + 200)
    assert late.ns == pytest.approx(early.ns + 200)


def test_dead_content_makes_room_without_a_copy() -> None:
    link = Link(memory_bytes=200, in_gbps=1.0, out_gbps=1.0)
    dead = Item(200, (write(0), Event.death(1)))
    made = problem([10.0, 10.0], dead, Item(200, (Event.death(0), write(1))), link=link)
    result = made.replay(made.keep_all())
    assert (result.ns, result.in_bytes, result.out_bytes) == (20.0, 0, 0)


def test_fetches_reach_as_far_ahead_as_is_asked() -> None:
    items = Item(100, (read(0),)), Item(50, (read(2),))
    made = problem([10.0, 100.0, 10.0], *items)
    plan = made.evict_all()
    assert made.replay(plan).ns < made.replay(plan, reach=0).ns


def test_what_cannot_run_takes_for_ever() -> None:
    made = problem([1.0], Item(200, (read(0),)), Item(200, (Event.death(0), write(0))))
    assert made.replay(made.evict_all()).ns == float("inf")
    assert made.belady() is None and made.relieve_pressure() is None


@pytest.mark.parametrize("launch", [-1, 2])
def test_an_event_of_no_launch_is_refused(launch: int) -> None:
    with pytest.raises(ValueError, match="of no launch"):
        problem([1.0, 1.0], Item(8, (read(launch),)))


def test_events_out_of_order_are_refused() -> None:
    for events in ((read(1), read(0)), (read(1), Event.death(1))):
        with pytest.raises(ValueError, match="not in order"):
            problem([1.0, 1.0], Item(8, events))


@pytest.mark.parametrize("link", [Link(0, 1.0, 1.0), Link(8, 0.0, 1.0), Link(8, 1.0, -1.0)])
def test_a_link_without_memory_or_rates_is_refused(link: Link) -> None:
    with pytest.raises(ValueError, match="not positive"):
        problem([1.0], Item(8, (read(0),)), link=link)


def test_a_plan_of_another_problem_is_refused() -> None:
    made = problem([1.0, 1.0], Item(8, (read(0),)))
    with pytest.raises(ValueError, match="has 3 gaps"):
        made.replay(np.zeros(3, dtype=np.uint8))
