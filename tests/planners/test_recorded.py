"""From what a core recorded to a plan that a core follows."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from deepum._core import lib

from deepum.core import UM_BLOCK_BYTES, LaunchTime, PlannedKind, PlannedMove, Recording, plan_files
from deepum.core.plan_requests import Options, Request
from deepum.errors import DeepumError
from deepum.planners import Event, Link, Problem
from deepum.planners.catalogue import BY_NAME
from deepum.planners.leaner import leaner
from deepum.planners.outline import Outline
from deepum.planners.recorded import ITEM_BLOCKS, RecordedIteration, Run
from deepum.planners.schedule import scheduled
from deepum.planners.times import launch_ns
from deepum.planners.worker import planned

WRITES, ENDS = lib.DEEPUM_RECORDED_WRITES, lib.DEEPUM_RECORDED_ENDS
_USE = struct.Struct("<QIIIIIBBH")


def use(
    launch: int, block: int, count: int, *, kind: int = WRITES, name: int = 1, first: int = -1
) -> bytes:
    """UM blocks of slot 0, which have their index there in what has the name unless given."""
    return _USE.pack(name, launch, 0, block, block if first < 0 else first, count, kind, 0, 0)


def recording(launches: int, uses: Sequence[bytes], first: int = 1) -> Recording:
    return Recording(
        b"".join(struct.pack("<QQ", 100 + i, first + i) for i in range(launches)), b"".join(uses)
    )


def iteration(launches: int, *uses: bytes, duplicates: bool = False) -> RecordedIteration:
    return RecordedIteration(recording(launches, uses), [1e6] * launches, duplicates=duplicates)


def test_blocks_that_are_used_alike_are_one_item() -> None:
    made = iteration(3, use(0, 0, 4), use(1, 4, 2), use(2, 0, 4))
    sizes = [item.bytes // UM_BLOCK_BYTES for item in made.iteration.items]
    assert sorted(sizes) == [2, 4]
    assert [blocks.tolist() for blocks in made.blocks] == [[0, 1, 2, 3], [4, 5]]
    assert [event.launch for event in made.iteration.items[0].events] == [0, 2]


def test_an_item_has_no_more_than_so_many_blocks() -> None:
    made = iteration(2, use(0, 0, 3 * ITEM_BLOCKS + 1), use(1, 90, 1))
    assert [len(blocks) for blocks in made.blocks] == [ITEM_BLOCKS] * 3 + [1, 1]
    assert made.iteration.items[0].tensor_bytes == (3 * ITEM_BLOCKS + 1) * UM_BLOCK_BYTES


def test_what_leaves_unified_memory_is_copied_even_if_it_was_only_read() -> None:
    read = use(1, 0, 1, kind=0)
    moved, kept = (
        iteration(2, use(0, 0, 1), read, duplicates=duplicates) for duplicates in (False, True)
    )
    assert [event.writes for event in moved.iteration.items[0].events] == [True, True]
    assert [event.writes for event in kept.iteration.items[0].events] == [True, False]


def test_content_that_ended_is_not_read() -> None:
    made = iteration(4, use(1, 0, 1), use(2, 0, 1), use(3, 0, 1, kind=ENDS), use(3, 9, 1))
    assert made.iteration.items[0].events == (
        Event(1, reads=False, writes=True),
        Event(2, reads=True, writes=True),
        Event.death(3),
    )


def test_what_ends_behind_all_launches_ends_before_the_first() -> None:
    made = iteration(2, use(0, 0, 1), use(1, 0, 1), use(2, 0, 1, kind=ENDS))
    assert made.iteration.items[0].events[0] == Event.death(0)
    assert not made.iteration.items[0].events[1].reads


def test_an_item_has_the_names_that_it_has_at_each_launch() -> None:
    made = iteration(2, use(0, 4, 2, name=5, first=0), use(1, 3, 3, name=6, first=7))
    item = [blocks.tolist() for blocks in made.blocks].index([4, 5])
    assert made.runs(item, 0) == [Run(5, 0, 2)]
    assert made.runs(item, 1) == [Run(6, 8, 2)]


def test_several_devices_and_no_launches_are_refused() -> None:
    other = _USE.pack(1, 0, 1, 0, 0, 1, WRITES, 0, 1)
    with pytest.raises(ValueError, match="several devices"):
        iteration(1, use(0, 0, 1), other)
    with pytest.raises(ValueError, match="no launches"):
        RecordedIteration(Recording(b"", b""), [])


def times(
    ns: Sequence[float], waits: Sequence[float], iterations: int, every: int = 1
) -> list[LaunchTime]:
    """Of a program whose launches take and wait so many microseconds, from the 11th on."""
    launch_times, now, waited = [], 50.0, 0.0
    for number in range(iterations * len(ns)):
        now += ns[number % len(ns)] + waits[number % len(ns)]
        waited += waits[number % len(ns)]
        if number % every == 0:
            launch_times.append(LaunchTime(11 + number, round(now), round(waited)))
    return launch_times


def test_launches_take_what_they_took_without_what_they_waited_for() -> None:
    took, waits = [30.0, 10.0, 50.0, 10.0], [0.0, 500.0, 0.0, 70.0]
    found = launch_ns(times(took, waits, 3), 11, 4)
    assert found == pytest.approx([1000 * us for us in took])
    shifted = launch_ns(times(took, waits, 3), 12, 4)
    assert shifted == pytest.approx([10e3, 50e3, 10e3, 30e3])


def test_launches_between_two_times_share_theirs() -> None:
    found = launch_ns(times([30.0, 10.0, 50.0, 10.0], [0.0] * 4, 4, every=2), 11, 4)
    assert found == pytest.approx([20e3, 30e3, 30e3, 20e3])
    with pytest.raises(ValueError, match="no whole iteration"):
        launch_ns(times([1.0] * 4, [0.0] * 4, 1, every=2), 11, 4)


BLOCK = UM_BLOCK_BYTES


def layers(count: int, blocks: int) -> Recording:
    """There and back over layers of so many blocks."""
    order = [*range(count), *reversed(range(count))]
    return recording(
        2 * count, [use(i, blocks * layer, blocks) for i, layer in enumerate(order)], first=11
    )


def test_a_plan_that_is_followed_fits_and_brings_what_is_needed() -> None:
    """Its moves, carried out launch by launch, never have more on the device than there is."""
    record, room, count = layers(12, 4), 30, 24
    steady = RecordedIteration(record, [2e6] * count)
    problem = Problem(steady.iteration, Link(room * BLOCK, 1.0, 1.0, copies_early=False))
    gaps = problem.belady()
    assert gaps is not None
    plan = scheduled(steady, problem, gaps)
    assert list(plan.launches) == [100 + i for i in range(count)]
    order = [*range(12), *reversed(range(12))]
    there: set[int] = set()
    missing = 0
    for iteration_number in range(3):
        for launch in range(count):
            needed = set(range(4 * order[launch], 4 * order[launch] + 4))
            missing += len(needed - there) if iteration_number == 2 else 0
            there |= needed
            for move in (move for move in plan.moves if move.launch == launch):
                blocks = set(range(move.first, move.first + move.count))
                there = there - blocks if move.kind is PlannedKind.EVICT else there | blocks
                if iteration_number == 2:
                    assert len(there) <= room
    assert missing == 0
    assert any(move.kind is PlannedKind.PREFETCH for move in plan.moves)


def test_a_leaner_plan_moves_less_and_takes_no_longer() -> None:
    steady = RecordedIteration(layers(12, 4), [20e6] * 24)
    problem = Problem(steady.iteration, Link(30 * BLOCK, 1.0, 1.0, copies_early=False))
    wasteful = problem.belady(slack=0.5)
    assert wasteful is not None
    lean = leaner(problem, wasteful)
    assert lean.sum() < wasteful.sum()
    assert problem.replay(lean).ns <= problem.replay(wasteful).ns * 1.001
    assert problem.occupancy(lean).max() <= 30 * BLOCK


def request(memory_blocks: int) -> Request:
    launch_times = tuple(LaunchTime(11 + i, 1000 + 2000 * i, 0) for i in range(72))
    return Request(
        layers(12, 4), launch_times, Options(memory_blocks * BLOCK, 1.0, 1.0, seconds=2.0)
    )


def test_the_worker_plans_what_does_not_fit_and_says_why_it_does_not_otherwise() -> None:
    plan = planned(request(30))
    assert plan_files.decode(plan_files.encode(plan)) == plan
    kinds = dict.fromkeys(PlannedKind, 0)
    for move in plan.moves:
        kinds[move.kind] += move.count
    assert kinds[PlannedKind.PREFETCH] == kinds[PlannedKind.EVICT] > 0
    assert all(isinstance(move, PlannedMove) and move.name == 1 for move in plan.moves)
    outline = Outline.decode(plan.outline)
    assert outline.made.planner in BY_NAME and outline.link.memory_bytes == 30 * BLOCK
    replayed = outline.problem().replay(outline.plan)
    assert replayed.in_bytes == kinds[PlannedKind.PREFETCH] * BLOCK
    assert replayed.out_bytes == kinds[PlannedKind.EVICT] * BLOCK
    assert {run.name for runs in outline.names for run in runs} == {1}
    with pytest.raises(DeepumError, match="fits"):
        planned(request(48))
    with pytest.raises(DeepumError, match="no plan"):
        planned(request(3))


def copying(*uses: bytes, launches: int = 8) -> list[tuple[int, PlannedKind, int]]:
    """Launch, kind and first UM block of the moves of a plan that copies ahead, in which all gaps of
    block 0 leave; three other blocks stay.
    """
    record = recording(launches, [*uses, use(0, 5, 3)])
    steady = RecordedIteration(record, [10e6] * launches, duplicates=True)
    problem = Problem(steady.iteration, Link(16 * BLOCK, 1.0, 1.0))
    plan = problem.keep_all()
    for number, gap in enumerate(problem.gaps):
        plan[number] = steady.blocks[gap.item].tolist() == [0]
    moves = scheduled(steady, problem, plan).moves
    assert {move.first for move in moves} == {0}
    return [(move.launch, move.kind, move.first) for move in moves]


def kinds(moves: list[tuple[int, PlannedKind, int]]) -> list[PlannedKind]:
    return [kind for _, kind, _ in moves]


EVICT, COPY_OUT = PlannedKind.EVICT, PlannedKind.COPY_OUT
PREFETCH, DUPLICATE = PlannedKind.PREFETCH, PlannedKind.DUPLICATE


def test_what_is_written_and_leaves_later_is_copied_out_behind_its_write() -> None:
    """It is used at launch 1, which writes, and 3; the link is idle, so that it is copied at once,
    while launch 2 runs. It leaves behind 3 and comes back for 1.
    """
    moves = copying(use(1, 0, 1), use(3, 0, 1, kind=0))
    assert (2, COPY_OUT, 0) not in moves  # behind 1 it leaves at once
    assert kinds(moves).count(COPY_OUT) == 0
    assert (1, EVICT, 0) in moves and (3, EVICT, 0) in moves
    # The copy of launch 1 is the host's still when it leaves behind 3; there it is written next.
    assert kinds(moves).count(DUPLICATE) == 1 and kinds(moves).count(PREFETCH) == 1


def test_a_copy_is_made_before_the_launch_behind_which_its_content_leaves() -> None:
    record = recording(8, [use(1, 0, 1), use(4, 0, 1, kind=0), use(0, 5, 3)])
    steady = RecordedIteration(record, [10e6] * 8, duplicates=True)
    problem = Problem(steady.iteration, Link(16 * BLOCK, 1.0, 1.0))
    plan = problem.keep_all()
    for number, gap in enumerate(problem.gaps):
        plan[number] = steady.blocks[gap.item].tolist() == [0] and gap.start == 4
    moves = [(m.launch, m.kind) for m in scheduled(steady, problem, plan).moves]
    (copied,) = [launch for launch, kind in moves if kind is COPY_OUT]
    assert 1 <= copied < 4 and (4, EVICT) in moves
    assert [kind for _, kind in moves if kind in (PREFETCH, DUPLICATE)] == [PREFETCH]
    late = Problem(steady.iteration, Link(16 * BLOCK, 1.0, 1.0, copies_early=False))
    assert {m.kind for m in scheduled(steady, late, plan).moves} == {EVICT, PREFETCH}


def test_what_nothing_writes_keeps_its_copy_on_the_host() -> None:
    moves = copying(use(1, 0, 1, kind=0), use(4, 0, 1, kind=0))
    assert sorted(kinds(moves)) == sorted([EVICT, EVICT, DUPLICATE, DUPLICATE])


def test_what_ends_before_its_copy_is_done_is_not_evicted() -> None:
    """Two blocks are written at once, leave at once, and end before launch 3: the link copies one
    of them by then.
    """
    ends = [use(3, block, 1, kind=ENDS) for block in (0, 1)]
    record = recording(
        8, [use(1, 0, 1), use(1, 1, 1), *ends, use(0, 5, 3), use(5, 0, 1), use(6, 1, 1)]
    )
    steady = RecordedIteration(record, [1.5 * BLOCK] * 8)
    problem = Problem(steady.iteration, Link(16 * BLOCK, 1.0, 1.0, copies_early=False))
    plan = problem.keep_all()
    for number, gap in enumerate(problem.gaps):
        plan[number] = gap.start == 1 and gap.death is not None
    replayed = problem.replay(plan)
    assert plan.sum() == 2 and replayed.left.sum() == 1
    moves = scheduled(steady, problem, plan).moves
    assert [(move.launch, move.kind, move.count) for move in moves] == [(1, EVICT, 1)]
