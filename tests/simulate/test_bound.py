"""The lower bound: never above the best schedule that brute force finds, nor above anything that
the simulation reaches.
"""

from __future__ import annotations

import heapq
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
from small import MIB, random_iteration, training

from deepum.simulate.bound import Link, Use, Work, bound, of_iteration, periodic
from deepum.simulate.policies import POLICIES
from deepum.simulate.policy_run import DoesNotFitError, run
from deepum.simulate.replay import machine, replay
from deepum.simulate.workload import Workload
from deepum.trace import g10

GBPS = 15.754


def work(ns: float, reads: str = "", writes: str = "", dies: str = "", size: int = 1) -> Work:
    """A kernel on pieces with names of one letter; one that is read and written is changed in
    place.
    """
    uses = tuple(
        Use(key, size, key in reads, key in writes) for key in dict.fromkeys(reads + writes)
    )
    return Work(ns, uses, tuple(dies))


def best_schedule(works: list[Work], memory: int) -> int:
    """The shortest time by trying everything: pieces of one byte, a link of one byte a ns each way,
    moves that begin at whole ns.

    At each ns one piece may begin to come in (if the host has its content and there is room) and
    one may be copied out (its place is kept; a clean piece, or one without content, leaves at
    once). A kernel starts when its pieces are there; what it writes is not copied out meanwhile.
    """
    needed = [frozenset(use.key for use in one.uses) for one in works]
    first_use: dict[tuple[int, Any], Use] = {}
    for number, one in enumerate(works):
        for use in one.uses:
            first_use.setdefault((number, use.key), use)
    start = frozenset(key for keys in needed for key in keys)
    # time, tie, kernel, ns left of it, on the device, content on the device, content on the host
    tie = count()
    queue: list[tuple[Any, ...]] = [(0, next(tie), 0, 0, frozenset(), frozenset(), start)]
    seen: dict[Any, Any] = {}
    while queue:
        now, _, kernel, left, there, content, host = heapq.heappop(queue)
        if kernel == len(works):
            return int(now)
        if seen.get((kernel, left, there, content, host), 1 << 30) <= now:
            continue
        seen[kernel, left, there, content, host] = now
        running = needed[kernel] if left else frozenset()
        # What may leave at once, leaves if there is need: every subset of one is enough, others
        # follow at no time.
        for key in there - running:
            if key not in content or key in host:
                heapq.heappush(
                    queue, (now, next(tie), kernel, left, there - {key}, content - {key}, host)
                )
        if not left:
            present = all(
                (key in there and (key in content or not first_use[kernel, key].reads))
                or (key not in there and not first_use[kernel, key].reads)
                for key in needed[kernel]
            )
            fresh = needed[kernel] - there
            if present and len(there) + len(fresh) <= memory:
                written = frozenset(key for key in needed[kernel] if first_use[kernel, key].writes)
                state = (
                    kernel,
                    int(works[kernel].ns),
                    there | fresh,
                    content | written,
                    host - written,
                )
                heapq.heappush(queue, (now, next(tie), *state))
        into = [key for key in host - there if len(there) < memory] + [None]
        changing = {key for key in running if first_use[kernel, key].writes}
        out = [key for key in content - host if key not in changing] + [None]
        for arrives in into:
            for leaves in out:
                after_left, after_kernel = max(left - 1, 0), kernel
                now_there = there | {arrives} if arrives else there
                now_content = content | {arrives} if arrives else content
                now_host = host | {leaves} if leaves else host
                if left == 1:
                    dead = frozenset(works[kernel].dies)
                    after_kernel += 1
                    now_content, now_host = now_content - dead, now_host - dead
                if left or arrives or leaves:
                    heapq.heappush(
                        queue,
                        (
                            now + 1,
                            next(tie),
                            after_kernel,
                            after_left,
                            now_there,
                            now_content,
                            now_host,
                        ),
                    )
    raise AssertionError("no schedule")


@pytest.mark.parametrize("seed", range(60))
def test_it_is_at_or_below_the_best_schedule(seed: int) -> None:
    random = Random(seed)
    pieces = "abcde"[: random.randrange(3, 6)]
    memory = random.randrange(2, len(pieces))
    works: list[Work] = []
    dead: set[str] = set()
    for _ in range(random.randrange(3, 8)):
        touched = random.sample(pieces, random.randrange(1, min(2, memory) + 1))
        reads = "".join(key for key in touched if key not in dead and random.random() < 0.75)
        writes = "".join(key for key in touched if key not in reads or random.random() < 0.4)
        dies = "".join(key for key in touched if random.random() < 0.1)
        works.append(work(random.randrange(1, 4), reads, writes, dies))
        dead = dead - set(touched) | set(dies)
    found = bound(works, Link(memory, 1, 1))
    assert found.compute_ns <= found.ns <= best_schedule(works, memory)
    for reach in (1, 3):
        assert bound(works, Link(memory, 1, 1), reach).ns <= found.ns


def test_what_does_not_fit_crosses_the_link() -> None:
    """Four pieces in turn, room for two: of what is alive before each reading, two are away."""
    works = [work(1, key) for key in "abcd" * 3]
    found = bound(works, Link(2, 1, 1))
    assert found.transfers_ns > 0
    assert found.ns <= best_schedule(works, 2)


def test_it_sees_when_data_can_move() -> None:
    """A forward pass that makes more than fits: what exceeds the card has to leave before the pass
    ends, though the link is idle later.
    """
    forward = [work(1, "", key) for key in "abcdef"]
    backward = [work(10, key, "", key) for key in "fedcba"]
    found = bound([*forward, *backward], Link(3, 1, 0.25))
    moved = 3 / 0.25
    assert found.compute_ns == 66 > moved, "both at once would hide the transfers"
    assert found.ns >= moved + 60


def test_dead_and_overwritten_content_costs_nothing() -> None:
    dead = [work(1, "", "a"), work(1, "a", "", "a"), work(1, "", "b"), work(1, "b", "", "b")]
    overwritten = [
        work(1, "", "a"),
        work(1, "", "b"),
        work(1, "", "c"),
        work(1, "", "a"),
        work(1, "", "b"),
    ]
    for works in (dead * 3, overwritten * 3):
        assert bound(works, Link(1, 1, 1)).transfers_ns == 0


def test_clean_content_need_not_be_copied_out_again() -> None:
    """Weights that are only read come in each time, and never go out: a slow link outwards costs
    nothing.
    """
    works = [work(1, "", key) for key in "abcd"] + [work(1, key) for key in "abcd" * 6]
    slow_out, slow_in = bound(works, Link(2, 1, 0.01)), bound(works, Link(2, 0.01, 1))
    assert slow_in.ns > 6 * 200
    assert slow_out.ns < 300


def test_data_on_one_side_at_a_time_leaves_after_its_last_use() -> None:
    """Written long ago, read just now, away soon: a copy ahead of need would be there already."""
    works = (
        [work(1, "", key) for key in "abc"]
        + [work(9, "z")] * 3
        + [work(1, key) for key in "abc"]
        + [work(1, "", key) for key in "xyw"]
    )
    works += [work(1, key) for key in "xywabc"]
    ahead, after = (bound(works, Link(3, 1, 0.1, duplicates)).ns for duplicates in (True, False))
    assert after > ahead + 20


def test_an_iteration_is_bounded_by_what_follows_it() -> None:
    """Weights of the last kernels are needed by the first of the next iteration: a single one does
    not show it.
    """
    works = [work(1, key, key) for key in "abcd"]
    assert bound(works, Link(2, 1, 1)).transfers_ns == 0
    found = periodic(works, Link(2, 0.5, 1))
    assert found.ns >= 4, "two of the four come in, at half a piece a ns"
    assert found.compute_ns == 4


@pytest.mark.parametrize("seed", range(8))
def test_no_policy_is_below_it(tmp_path: Path, seed: int) -> None:
    iteration = (
        training(tmp_path / "w", layers=5 + seed, us=200 * seed + 50)
        if seed < 4
        else random_iteration(tmp_path / "w", seed)
    )
    made, works = g10.trace(iteration, 7), of_iteration(iteration)
    memory = (64 + 32 * (seed % 3)) * MIB
    limit = periodic(works, Link(memory, GBPS, GBPS)).ns
    moving = periodic(works, Link(memory, GBPS, GBPS, duplicates=False)).ns
    assert moving >= limit >= iteration.compute_us * 1e3 * (1 - 1e-9)
    for policy in POLICIES:
        if policy.unlimited:
            continue
        queue = policy.launch_queue or 1024
        if policy.swaps:  # copies ahead of need, and keeps what it copied
            try:
                ends = [
                    mark.ns
                    for mark in run(
                        Workload("w", made, "a100-40gb-g10"), "a100-40gb-g10", policy, memory, 1024
                    ).marks
                ]
            except DoesNotFitError:
                continue
            assert (ends[-1] - ends[2]) / (len(ends) - 3) >= limit * (1 - 1e-6), policy.name
            continue
        outcome = replay(
            made, machine("a100-40gb-g10", launch_queue=queue), policy.settings(queue), memory
        )
        ends = [mark.ns for mark in outcome.marks]
        assert (ends[-1] - ends[2]) / (len(ends) - 3) >= moving * (1 - 1e-6), policy.name
