"""Allocators: what they place never overlaps, is never lower than the lowest arena that there is,
and the search finds that one.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from instances import apart, dense, lowest, random_buffers

from deepum.arena import Buffer, Fit, Problem
from deepum.arena.allocator import (
    ALLOCATORS,
    Allocator,
    BestFit,
    Greedy,
    PathCover,
    Search,
    path_cover,
    path_cover_bound,
)
from deepum.arena.buffers import read
from deepum.planners.planner import Limits

SEEDS = range(12)
ALL = pytest.mark.parametrize("allocator", ALLOCATORS, ids=lambda allocator: allocator.name)


@ALL
@pytest.mark.parametrize("aligned", [False, True], ids=["bytes", "aligned"])
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_overlaps(allocator: type[Allocator], aligned: bool, seed: int) -> None:
    buffers = random_buffers(seed, 60, most_time=40, aligned=aligned)
    problem = Problem(buffers)
    found = allocator().best(problem, Limits(0.2))
    assert apart(buffers, list(found.offsets))
    top = max(at + one.size for at, one in zip(found.offsets, buffers, strict=True))
    assert found.bytes == top == problem.height(found.offsets)
    assert problem.load <= found.bound_bytes <= found.bytes


@pytest.mark.parametrize("aligned", [False, True], ids=["bytes", "aligned"])
@pytest.mark.parametrize("seed", range(20))
def test_the_search_finds_and_proves_the_lowest_arena(aligned: bool, seed: int) -> None:
    buffers = random_buffers(seed, 6, most_time=8, aligned=aligned)
    least = lowest(buffers)
    found = Search().best(Problem(buffers), Limits(5.0))
    assert found.bytes == found.bound_bytes == least
    for other in (Greedy(), PathCover(), BestFit()):
        assert other.best(Problem(buffers), Limits(5.0)).bytes >= least


@pytest.mark.parametrize("seed", range(8))
def test_the_search_fills_an_arena_without_holes(seed: int) -> None:
    problem = Problem(dense(seed, 60))
    assert problem.load == 4096
    assert BestFit().best(problem, Limits(5.0)).bytes >= 4096
    assert Search().best(problem, Limits(20.0)).bytes == 4096


@pytest.mark.parametrize("seed", range(4))
def test_the_search_fills_an_arena_of_300_buffers(seed: int) -> None:
    """Within seconds only where branches that leave room below a buffer end early."""
    assert Search().best(Problem(dense(seed, 300)), Limits(10.0)).bytes == 4096


def test_dense_instances_are_hard_for_greedy_allocators() -> None:
    problems = [Problem(dense(seed, 60)) for seed in range(8)]
    missed = [BestFit().best(problem, Limits(5.0)).bytes > 4096 for problem in problems]
    assert sum(missed) >= 6


@pytest.mark.parametrize("seed", SEEDS)
def test_a_path_cover_has_as_few_groups_as_live_at_once_and_keeps_its_bound(seed: int) -> None:
    for aligned in (False, True):
        problem = Problem(random_buffers(seed, 80, most_time=60, aligned=aligned))
        groups = path_cover(problem)
        assert sorted(number for group in groups for number in group) == list(range(80))
        assert len(groups) == problem.overlap
        for group in groups:
            members = [problem.buffers[number] for number in group]
            assert all(a.end <= b.begin for a, b in itertools.pairwise(members))
        assert PathCover().best(problem, Limits(5.0)).bytes <= path_cover_bound(problem)


def test_a_chain_is_a_staircase_for_the_old_greedy_and_two_high_for_a_path_cover() -> None:
    depth = 50
    chain = [Buffer(str(i), i, i + 2, 100 - i) for i in range(depth)]
    problem = Problem(chain)
    assert problem.overlap == 2  # W = 1: one path covers all edges of the network
    assert PathCover().best(problem, Limits(5.0)).bytes <= 2 * 1 * problem.largest
    assert Greedy().best(problem, Limits(5.0)).bytes > 10 * problem.largest


def test_incumbents_only_get_lower_and_bounds_higher() -> None:
    for allocator in ALLOCATORS:
        found = list(allocator().incumbents(Problem(dense(3, 80)), Limits(2.0)))
        heights = [one.bytes for one in found]
        bounds = [one.bound_bytes for one in found]
        assert heights and heights == sorted(heights, reverse=True)
        assert bounds == sorted(bounds)
        assert all(one.gap == pytest.approx(one.bytes / one.bound_bytes - 1) for one in found)


def test_the_search_ends_at_the_capacity() -> None:
    problem = Problem(dense(1, 60))
    loose = list(Search().incumbents(problem, Limits(20.0), 5000))
    assert loose[-1].bytes <= 5000
    assert all(one.bytes > 5000 for one in loose[:-1])


def test_the_same_seed_finds_the_same() -> None:
    problem = Problem(dense(5, 60))
    first, again = (list(Search().incumbents(problem, Limits(20.0, seed=7))) for _ in range(2))
    assert first == again and first[-1].bytes == 4096


def test_what_cannot_be_had_is_proven() -> None:
    """Three in a ring of time: two live at any time, and three places are needed."""
    ring = [
        Buffer("a", 0, 3, 2),
        Buffer("b", 2, 6, 2),
        Buffer("c", 5, 8, 3),
        Buffer("d", 0, 2, 3),
        Buffer("e", 3, 5, 3),
        Buffer("f", 6, 8, 2),
    ]
    found = Search().best(Problem(ring), Limits(5.0))
    assert found.bytes == found.bound_bytes == lowest(ring)


def test_no_time_still_gives_an_arena() -> None:
    problem = Problem(dense(2, 60))
    for allocator in ALLOCATORS:
        found = allocator().best(problem, Limits(0.0))
        assert problem.height(found.offsets) == found.bytes


def test_nothing_and_empty_buffers_are_placed() -> None:
    for allocator in ALLOCATORS:
        assert allocator().best(Problem([]), Limits(1.0)).bytes == 0
        some = [Buffer("none", 0, 9, 0, 64), Buffer("a", 1, 3, 10), Buffer("b", 2, 9, 5)]
        assert allocator().best(Problem(some), Limits(1.0)).bytes == 15


def test_parts_of_time_are_placed_apart() -> None:
    first = dense(1, 30)
    second = [Buffer(f"s{b.name}", b.begin + 1000, b.end + 1000, b.size) for b in dense(2, 30)]
    throughout = Buffer("weights", 0, 2000, 512)
    found = Search().best(Problem([*first, throughout, *second]), Limits(20.0))
    assert found.bytes == 4096 + 512


def test_what_cannot_be_placed_is_refused() -> None:
    for wrong in (
        Buffer("x", 3, 3, 1),
        Buffer("x", -1, 3, 1),
        Buffer("x", 0, 3, -1),
        Buffer("x", 0, 3, 1, 0),
        Buffer("x", 0, 1, 1 << 62),
        Buffer("x", 0, 1, 1 << 70),
    ):
        with pytest.raises(ValueError, match=r"2\^62"):
            Problem([wrong])
    problem = Problem([Buffer("a", 0, 2, 8, 4), Buffer("b", 1, 3, 8, 4)])
    for offsets in ([0, 4], [0, 10], [-8, 0]):
        with pytest.raises(ValueError, match="overlap"):
            problem.height(offsets)
    with pytest.raises(ValueError, match="1 offsets for 2 buffers"):
        problem.height([0])
    with pytest.raises(ValueError, match="each buffer once"):
        problem.place([0, 0], Fit.LOWEST)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", list("ABCDEF"))
def test_published_instances_fit_their_capacity(published: Path, name: str, seed: int) -> None:
    buffers = read(str(published / "minimalloc" / f"{name}.1048576.csv"))
    found = Search().best(Problem(buffers), Limits(10.0, seed), 1 << 20)
    assert found.bytes <= 1 << 20 and apart(buffers, list(found.offsets))


def test_resnet_50_needs_no_more_than_lives_at_once(published: Path) -> None:
    problem = Problem(read(str(published / "idealloc" / "resnet50.csv")))
    found = Search().best(problem, Limits(60.0))
    assert found.bytes <= problem.load * 1.01
