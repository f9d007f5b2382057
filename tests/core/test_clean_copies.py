"""Clean copies: what the host has as well leaves without a copy, and what is written is copied out
where that saves one.
"""

from __future__ import annotations

import pytest
from deepum._core import lib
from duplicating import (
    CANCELLED,
    FAILED,
    SET_READ_MOSTLY,
    UNSET_READ_MOSTLY,
    Program,
    Step,
    blocks,
    span,
    uses,
)

from deepum.core import UM_BLOCK_BYTES, BlockRange, Command, Core

BLOCK = UM_BLOCK_BYTES
GRAPH = lib.DEEPUM_EXECUTE_GRAPH
SETTLED = 256  # launches
X = BlockRange(0, 0, 4)
# Makes all leave that is used before it.
REST = [uses(100 + i, BlockRange(1, 4 * i, 4)) for i in range(5)]
# 40 launches make 2 a twentieth of an iteration.
IDLE = [uses(200 + i, BlockRange(1, 19, 1)) for i in range(35)]
READS, WRITES = Step(1, read=(X,)), Step(2, written=(X,))


def program(**settings: int) -> Program:
    """A card of 16 blocks; slot 0 holds what is asked about, slot 1 what else an iteration reads or
    writes.
    """
    return Program(16, (8, 20), **settings)


def of_slot(commands: list[Command], slot: int, *kinds: str) -> list[tuple[str, int]]:
    """Kinds and blocks of one slot's commands, as they come; of those kinds, if any are named."""
    return [
        (c.kind, block)
        for c in commands
        if c.slot == slot and c.kind != "hold" and c.kind in (kinds or (c.kind,))
        for block in range(c.first_block, c.first_block + c.block_count)
    ]


def duplicated(*steps: Step, **settings: int) -> Program:
    """Iterations of these and of the rest; what they use on slot 0 is there and on the host
    then.
    """
    made = program(**settings)
    made.run([*steps, *REST, *IDLE], 3)
    for step in steps:
        made.launch(step)
    return made


def test_what_is_read_leaves_without_a_copy_from_the_second_time_on_that_it_came_back() -> None:
    made = program()
    left = [made.run([READS, *REST]) for _ in range(5)]
    assert [
        set(of_slot(commands, 0, "evict", "drop", "advise", "copy_out")) for commands in left
    ] == [
        {("evict", block) for block in range(4)},
        {("evict", block) for block in range(4)},
        {(kind, block) for kind in ("advise", "drop") for block in range(4)},
        {("drop", block) for block in range(4)},
        {("drop", block) for block in range(4)},
    ]
    statistics = made.core.statistics()
    assert statistics.bytes_copied_out == 0
    assert statistics.bytes_dropped == BLOCK * sum(
        c.block_count for commands in left for c in commands if c.kind == "drop"
    )


def test_it_is_advised_before_the_prefetch_and_behind_the_moves_before_it() -> None:
    made = program()
    commands = made.run([READS, *REST], 3)
    advised = [c for c in commands if c.kind == "advise"]
    assert advised and all((c.advice, c.location) == (SET_READ_MOSTLY, -1) for c in advised)
    assert [c.block_count for c in advised if c.slot == 0] == [4], "of all of its blocks at once"
    for one in advised:
        moves = [
            c
            for c in commands
            if c.slot == one.slot
            and c.first_block <= one.first_block < c.first_block + c.block_count
            and c is not one
        ]
        before, after = [c for c in moves if c.id < one.id], [c for c in moves if c.id > one.id]
        assert one.after_move == max(c.id for c in before)
        assert after[0].kind == "prefetch"


def test_a_writer_ends_the_duplication_before_it_runs() -> None:
    made = duplicated(READS)
    assert of_slot(made.launch(WRITES), 0) == [("collapse", block) for block in range(4)]
    assert of_slot(made.launch(WRITES), 0) == [], "once"


def test_what_comes_for_a_writer_ends_it_before_the_prefetch_and_behind_the_drop() -> None:
    made = duplicated(READS)
    dropped = {
        block: c.id
        for c in made.run(REST)
        for block in range(c.first_block, c.first_block + 4)
        if c.slot == 0 and c.kind == "drop"
    }
    commands = made.launch(WRITES)
    assert [(kind, block) for kind, block in of_slot(commands, 0)] == [
        (k, b) for k in ("collapse", "prefetch") for b in range(4)
    ]
    (collapse,) = [c for c in commands if c.kind == "collapse"]
    assert collapse.after_move == dropped[3]


def test_what_was_written_is_copied_out_behind_its_launch_and_leaves_without_a_copy() -> None:
    made = duplicated(READS)
    written = made.writer.sequence + 1
    commands = made.launch(WRITES)
    commands += made.run([*IDLE[:4], *REST])
    assert of_slot(commands, 0) == [
        (kind, block) for kind in ("collapse", "copy_out", "drop") for block in range(4)
    ]
    copied = [c for c in commands if c.kind == "copy_out"]
    (collapse,) = [c for c in commands if c.kind == "collapse"]
    assert all(
        c.after_sequence > written and c.stream_mask == 1 and c.after_move == collapse.id
        for c in copied
    )
    assert all(c.after_move >= copied[0].id for c in commands if c.slot == 0 and c.kind == "drop")


def test_a_copy_out_waits_for_all_streams_that_used_the_block() -> None:
    made = duplicated(READS)
    made.launch(Step(2, written=(X,), stream=3))
    copied = [c for c in made.run(IDLE[:4]) if c.kind == "copy_out"]
    assert copied and all(c.stream_mask == 0b1001 for c in copied)


def test_what_leaves_before_it_was_copied_is_copied_then() -> None:
    made = duplicated(READS)
    made.launch(WRITES)
    left = [c for step in REST[:2] for c in made.launch(step)]
    left += made.launch(Step(50, read=(BlockRange(1, 8, 12),)))
    evicted = of_slot(left, 0, "evict")
    assert evicted and {c.advice for c in left if c.kind == "evict"} == {0}


def test_a_write_that_nobody_foresaw_is_copied_when_it_leaves() -> None:
    made = duplicated(READS)
    made.launch(uses(9, X))
    made.look(X)
    left = made.run(REST)
    assert set(of_slot(left, 0, "evict", "drop")) == {("evict", block) for block in range(4)}
    assert {c.advice for c in left if c.kind == "evict" and c.slot == 0} == {UNSET_READ_MOSTLY}, (
        "or nothing would be copied"
    )


def test_a_copy_made_later_than_the_write_is_good() -> None:
    """The fault is told late: by then the block has left and come back."""
    made = duplicated(READS)
    made.launch(uses(9, X))
    begun = made.writer.sequence
    made.run([*REST, READS], look=False)
    made.writer.progress(0, 0, begun)
    made.writer.fault(X, access=lib.DEEPUM_FAULT_WRITE)
    made.decided()
    assert set(of_slot(made.run(REST), 0, "evict", "drop")) == {
        ("drop", block) for block in range(4)
    }


@pytest.mark.parametrize("distance", [8, 24])
def test_what_is_written_again_within_half_an_iteration_is_not_copied_out_between(
    distance: int,
) -> None:
    """Next uses are learned by how many launches later they came; a copy that was made all the same
    was in vain, and is not made again.
    """
    made = program()
    again = Step(3, written=(X,))
    step = [WRITES, *IDLE[:distance], again, *REST, *IDLE[distance:]]
    copied = []
    for _ in range(6):
        between = [command for one in step[: distance + 1] for command in made.launch(one)]
        copied.append(len(blocks(between, "copy_out")))
        made.run(step[distance + 1 :])
    assert copied == ([0, 0, 4, 0, 0, 0] if distance == 24 else [0] * 6)


def test_who_was_copied_for_in_vain_is_known_whoever_used_it_since() -> None:
    """A launch of which nobody knows yet whether it writes."""
    made = program()
    made.look()
    between = [WRITES, *IDLE[:24], uses(5, X), *IDLE[:2]]
    copied = []
    for _ in range(8):
        copied.append(
            len(blocks([command for one in between for command in made.launch(one)], "copy_out"))
        )
        made.run([Step(3, written=(X,)), *REST, *IDLE[24:]], look=False)
    assert sum(copied) > 0 and copied[-4:] == [0] * 4


def test_no_more_is_copied_out_than_is_evicted_in_an_iteration() -> None:
    """16 blocks are written once and read three times, while 8 others pass through the 4 that
    remain: most stay until they are written again, so that they are copied once.
    """
    made = Program(20, (16, 8))
    hot = BlockRange(0, 0, 16)
    passing = [Step(50 + i, read=(BlockRange(1, i, 1),)) for i in range(8)]
    nothing = [Step(100 + i) for i in range(30)]
    step = [Step(1, written=(hot,)), *passing[:2], Step(2, read=(hot,)), *passing[2:4], *nothing]
    step += [Step(3, read=(hot,)), *passing[4:6], Step(4, read=(hot,)), *passing[6:]]
    iterations = [made.run(step) for _ in range(6)]
    copied = [len(blocks(commands, "copy_out")) for commands in iterations]
    first = iterations[2]
    assert (
        copied[:2] == [0, 0]
        and 0 < copied[2] <= len(blocks(first, "evict") + blocks(first, "drop")) <= 16
    )
    assert copied[3:] == [0, 0, 0]


def test_what_is_used_once_more_before_it_leaves_is_copied_out_at_once() -> None:
    """As gradients are: new in each iteration, read by the optimizer long after, and driven out
    then. That it leaves is known two launches back in the second iteration; PyTorch takes it back
    at the end.
    """
    made = program(invalidation=0)
    copied, behind = [], []
    for _ in range(6):
        made.writer.block(True, 0, 0, 4 * BLOCK, 4 * BLOCK)
        commands = made.run([WRITES, *IDLE[:20], READS, *REST, *IDLE[20:]])
        made.writer.block(False, 0, 0, 4 * BLOCK, 0)
        copied.append(set(of_slot(commands, 0, "copy_out", "drop", "evict")))
        behind += [c.after_sequence for c in commands if c.kind == "copy_out"]
    assert copied[0] == {("evict", block) for block in range(4)}
    assert (
        copied[-1]
        == copied[-2]
        == {(kind, block) for kind in ("copy_out", "drop") for block in range(4)}
    )
    assert behind and all(behind)


def copied_of_gradients(*steps: Step) -> set[tuple[str, int]]:
    """What becomes of PyTorch's block of slot 0, new in each iteration, in the last of them."""
    made = program(invalidation=0)
    for _ in range(6):
        made.writer.block(True, 0, 0, 4 * BLOCK, 4 * BLOCK)
        commands = made.run(steps)
        made.writer.block(False, 0, 0, 4 * BLOCK, 0)
    return set(of_slot(commands, 0, "copy_out", "drop", "evict"))


@pytest.mark.parametrize(("touched", "kinds"), [(0, {"evict"}), (8, {"copy_out", "drop"})])
def test_how_long_it_stays_before_is_told_by_what_launches_touch(
    touched: int, kinds: set[str]
) -> None:
    """One launch of 113 is little, but not if it touches 8 blocks of some 140."""
    between = [Step(300, read=(BlockRange(1, 0, touched),))] if touched else []
    made = copied_of_gradients(WRITES, *between, READS, *REST, *IDLE * 3)
    assert made == {(kind, block) for kind in kinds for block in range(4)}


def test_only_what_did_write_copies_at_once() -> None:
    """What was written just before, and used then by a launch of which nobody knows what it
    does.
    """
    assert copied_of_gradients(WRITES, uses(5, X), *IDLE, READS, *REST, *IDLE * 2) == {
        ("evict", block) for block in range(4)
    }


def test_what_leaves_before_it_is_used_again_is_not_copied_out_ahead() -> None:
    """As activations do: one copy is enough, when it leaves."""
    made = program(invalidation=0)
    commands = []
    for _ in range(6):
        made.writer.block(True, 0, 0, 4 * BLOCK, 4 * BLOCK)
        commands += made.run([WRITES, *IDLE[:20], *REST, READS, *IDLE[20:]])
        made.writer.block(False, 0, 0, 4 * BLOCK, 0)
    assert of_slot(commands, 0, "copy_out", "advise") == []
    assert of_slot(commands, 0, "evict") != []


def test_what_does_not_outlive_an_iteration_is_not_duplicated() -> None:
    """PyTorch's blocks of activations: written, read and taken back."""
    made = program(invalidation=0)
    commands = []
    for _ in range(6):
        made.writer.block(True, 0, 0, 4 * BLOCK, 4 * BLOCK)
        commands += made.run([uses(7, X), *REST, READS, *IDLE])
        made.writer.block(False, 0, 0, 4 * BLOCK, 0)
    assert of_slot(commands, 0, "advise", "drop", "copy_out", "collapse") == []
    assert of_slot(commands, 1, "advise") != []


def test_what_is_handed_out_again_is_single_again() -> None:
    """What comes will be written."""
    made = program()
    made.writer.block(True, 0, 0, 8 * BLOCK, 8 * BLOCK)
    made.run([READS, *REST, *IDLE], 3)
    made.launch(READS)
    made.writer.block(False, 0, 0, 8 * BLOCK, 0)
    assert made.decided() == []
    made.writer.block(True, 0, 0, 8 * BLOCK, 8 * BLOCK)
    assert of_slot(made.decided(), 0) == [("collapse", block) for block in range(4)]
    assert made.launch(READS) == []


def test_what_died_is_dropped_and_not_copied_whether_duplicated_or_not() -> None:
    made = program()
    made.writer.block(True, 0, 0, 8 * BLOCK, 8 * BLOCK)
    made.run([READS, *REST, *IDLE], 3)
    made.launch(READS)
    made.writer.block(False, 0, 0, 8 * BLOCK, 0)
    assert of_slot(made.run(REST), 0) == [("discard", block) for block in range(4)]


def test_where_the_dead_may_not_be_discarded_they_leave_single() -> None:
    made = program()
    made.writer.block(True, 0, 0, 8 * BLOCK, 8 * BLOCK)
    made.run([READS, *REST, *IDLE], 3)
    made.launch(READS)
    made.writer.block(False, 0, 0, 8 * BLOCK, 0)
    made.writer.execute(300, flags=GRAPH)
    left = [c for c in made.run(REST) if c.slot == 0 and c.kind != "hold"]
    assert {(c.kind, c.advice) for c in left} == {("evict", UNSET_READ_MOSTLY)}


def test_the_next_allocation_in_a_slot_is_not_copied_out_for_the_one_before() -> None:
    made = duplicated(READS)
    made.launch(WRITES)  # to be copied out
    made.writer.free(0)
    made.writer.allocate(0, 8, generation=2)
    step = [WRITES, *IDLE, *REST]
    assert blocks(made.run(step), "copy_out") == []
    made.run(step, 4 * SETTLED // len(step) + 2)  # an iteration was longer once
    copied = [c for c in made.run(step) if c.kind == "copy_out"]
    assert {c.generation for c in copied} == {2}
    assert blocks(copied, "copy_out") == span(0, 0, 4), "each once"


@pytest.mark.parametrize("status", [FAILED, CANCELLED])
def test_a_copy_out_that_failed_is_not_believed(status: int) -> None:
    made = duplicated(READS)
    made.launch(WRITES)
    for copied in [c for c in made.run(IDLE[:4]) if c.kind == "copy_out"]:
        made.writer.moved(copied.id, status)
    left = made.run(REST)
    assert {(c.kind, c.advice) for c in left if c.slot == 0 and c.kind != "hold"} == {
        ("evict", UNSET_READ_MOSTLY)
    }


@pytest.mark.parametrize("status", [FAILED, CANCELLED])
def test_advice_that_was_not_taken_is_not_believed(status: int) -> None:
    made = program()
    made.run([READS, *REST, *IDLE], 2)
    advised = [c for c in made.launch(READS) if c.kind == "advise"]
    assert advised
    for one in advised:
        made.writer.moved(one.id, status)
    left = made.run(REST)
    assert {(c.kind, c.advice) for c in left if c.slot == 0 and c.kind != "hold"} == {("evict", 0)}
    assert {c.kind for c in made.launch(READS) if c.slot == 0} >= {"advise"}, "tried again"


@pytest.mark.parametrize("status", [FAILED, CANCELLED])
def test_a_drop_that_failed_leaves_the_block_where_it_was(status: int) -> None:
    made = duplicated(READS)
    dropped = [c for c in made.run(REST) if c.kind == "drop" and c.slot == 0]
    for one in dropped:
        made.writer.moved(one.id, status)
    made.decided()
    assert all(made.core.block_state(0, block) & Core.RESIDENT for block in range(4))


@pytest.mark.parametrize("status", [FAILED, CANCELLED])
def test_a_collapse_that_failed_is_made_again(status: int) -> None:
    made = duplicated(READS)
    (collapse,) = [c for c in made.launch(WRITES) if c.kind == "collapse"]
    made.writer.moved(collapse.id, status)
    assert of_slot(made.launch(WRITES), 0) == [("collapse", block) for block in range(4)]
