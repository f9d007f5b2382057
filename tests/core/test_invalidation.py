"""Dead blocks: dropped instead of copied, before all others, and only where nobody can miss
them.
"""

from __future__ import annotations

import itertools

import pytest
from deepum._core import lib

from deepum.core import UM_BLOCK_BYTES, BlockRange, Command, Core, CoreSettings, EventWriter

MiB = 1 << 20
OLDEST_LAST_USE, FURTHEST_NEXT_USE = 1, 2
BLOCK = UM_BLOCK_BYTES


def start(**changes: int) -> tuple[Core, EventWriter]:
    """A card of 16 blocks; slot 0 is PyTorch's, 24 blocks in PyTorch blocks of 4; slot 1 is
    another's, 8 blocks.
    """
    core, writer = (
        Core(
            CoreSettings.default(
                **{
                    "invalidation": 1,
                    "headroom_blocks": 0,
                    "eviction_order": OLDEST_LAST_USE,
                    **changes,
                }
            )
        ),
        EventWriter(),
    )
    writer.device(16)
    writer.allocate(0, 24)
    writer.allocate(1, 8)
    for i in range(6):
        writer.block(True, 0, 4 * i * BLOCK, 4 * BLOCK, (4 * i + 4) * BLOCK)
    core.process(writer.take())
    return core, writer


def use(writer: EventWriter, hash: int, slot: int, first: int, count: int, stream: int = 0) -> int:
    return writer.execute(hash, unknown=(BlockRange(slot, first, count),), stream=stream)


def fill(core: Core, writer: EventWriter) -> None:
    """Four of PyTorch's blocks are used, and the card is full."""
    for i in range(4):
        use(writer, i, 0, 4 * i, 4, stream=i % 2)
    core.process(writer.take())
    core.take_commands()


def decided(core: Core, writer: EventWriter) -> list[Command]:
    core.process(writer.take())
    return core.take_commands()


def blocks(commands: list[Command], kind: str) -> set[tuple[int, int]]:
    return {
        (c.slot, b)
        for c in commands
        if c.kind == kind
        for b in range(c.first_block, c.first_block + c.block_count)
    }


@pytest.mark.parametrize("order", [0, 1, 2])
def test_dead_blocks_go_before_older_ones_and_nothing_is_copied(order: int) -> None:
    """Room is made 8 blocks at a time."""
    core, writer = start(eviction_order=order)
    fill(core, writer)
    writer.block(False, 0, 4 * BLOCK, 4 * BLOCK, 20 * BLOCK)
    died = writer.block(False, 0, 12 * BLOCK, 4 * BLOCK, 16 * BLOCK)
    use(writer, 9, 1, 0, 4)
    commands = decided(core, writer)
    assert blocks(commands, "discard") == {(0, b) for b in (*range(4, 8), *range(12, 16))}
    assert blocks(commands, "evict") == set()
    assert all(
        c.after_sequence >= died and c.stream_mask == 0b11
        for c in commands
        if c.kind == "discard" and c.first_block >= 12
    )
    assert core.statistics().bytes_invalidated == 8 * BLOCK


def test_the_space_of_the_dead_is_taken_before_that_of_evictions_given_ahead() -> None:
    """Eight blocks leave for the first two; what dies then is free sooner than the six that
    remain.
    """
    core, writer = start(eviction_order=FURTHEST_NEXT_USE)
    fill(core, writer)
    use(writer, 9, 1, 0, 2)
    assert len(blocks(decided(core, writer), "evict")) == 8
    dying = next(i for i in range(4) if core.block_state(0, 4 * i) & Core.RESIDENT)
    writer.block(False, 0, 4 * dying * BLOCK, 4 * BLOCK, 20 * BLOCK)
    use(writer, 10, 1, 2, 2)
    commands = decided(core, writer)
    discarded = [c for c in commands if c.kind == "discard"]
    assert blocks(discarded, "discard") == {(0, 4 * dying + i) for i in range(4)}
    assert {c.after_move for c in commands if c.kind == "populate"} - {0} == {
        c.id for c in discarded
    }


def test_what_is_populated_in_its_space_waits_for_the_discard() -> None:
    core, writer = start()
    fill(core, writer)
    writer.block(False, 0, 8 * BLOCK, 4 * BLOCK, 20 * BLOCK)
    use(writer, 9, 1, 0, 4)
    commands = decided(core, writer)
    awaited, last = 0, max(c.id for c in commands if c.kind == "discard")
    for command in commands:
        if command.kind == "populate" and command.block_count == 0:
            awaited = max(awaited, command.after_move)
        elif command.kind == "populate" and command.first_block + command.block_count == 4:
            assert awaited == last
    assert awaited == last


def test_what_the_host_holds_is_dropped_too() -> None:
    core, writer = start()
    fill(core, writer)
    use(writer, 8, 1, 0, 4)  # evicts the oldest, alive
    assert blocks(decided(core, writer), "evict") == {(0, b) for b in range(8)}
    writer.block(False, 0, 0, 4 * BLOCK, 20 * BLOCK)
    commands = decided(core, writer)
    assert blocks(commands, "discard") == {(0, b) for b in range(4)}
    assert all(c.after_move > 0 for c in commands)  # behind the eviction


def test_only_um_blocks_that_are_inactive_all_over() -> None:
    core, writer = Core(CoreSettings.default(invalidation=1, headroom_blocks=0)), EventWriter()
    writer.device(8)
    writer.allocate(0, 8)
    writer.allocate(1, 8)
    writer.block(True, 0, 0, 3 * MiB, 3 * MiB)  # blocks 0 and half of 1
    writer.block(True, 0, 3 * MiB, 5 * MiB, 8 * MiB)  # the rest of 1, 2 and 3
    use(writer, 1, 0, 0, 8)
    core.process(writer.take())
    core.take_commands()
    writer.block(False, 0, 3 * MiB, 5 * MiB, 3 * MiB)
    use(writer, 2, 1, 0, 2)
    assert blocks(decided(core, writer), "discard") == {(0, 2), (0, 3)}
    writer.block(False, 0, 0, 3 * MiB, 0)  # completes block 1
    use(writer, 3, 1, 2, 2)
    assert blocks(decided(core, writer), "discard") == {(0, 0), (0, 1)}


@pytest.mark.parametrize("order", [1, 2])
def test_a_block_that_is_handed_out_again_is_alive(order: int) -> None:
    """And about to be used, so that older ones go first."""
    core, writer = start(eviction_order=order)
    fill(core, writer)
    writer.block(False, 0, 8 * BLOCK, 4 * BLOCK, 20 * BLOCK)
    writer.block(True, 0, 8 * BLOCK, 4 * BLOCK, 24 * BLOCK)
    use(writer, 9, 1, 0, 4)
    commands = decided(core, writer)
    assert not blocks(commands, "discard")
    assert blocks(commands, "evict") == {(0, b) for b in range(8)}


@pytest.mark.parametrize("reason", ["off", "graph", "mismatch", "on demand"])
def test_there_are_none(reason: str) -> None:
    core, writer = start(**{"off": {"invalidation": 0}, "on demand": {"policy": 0}}.get(reason, {}))
    fill(core, writer)
    if reason == "graph":
        writer.execute(50, unknown=(BlockRange(1, 7, 1),), flags=lib.DEEPUM_EXECUTE_GRAPH)
    writer.block(False, 0, 8 * BLOCK, 4 * BLOCK, (19 if reason == "mismatch" else 20) * BLOCK)
    use(writer, 9, 1, 0, 4)
    commands = decided(core, writer)
    assert not blocks(commands, "discard")
    assert bool(blocks(commands, "evict")) == (reason != "on demand")


def test_each_device_has_a_total_of_its_own() -> None:
    """PyTorch's allocator keeps one for each; another device's blocks make no mismatch."""
    core, writer = start()
    fill(core, writer)
    writer.device(16, device=1)
    writer.allocate(2, 8, device=1)
    writer.block(True, 2, 0, 4 * BLOCK, 4 * BLOCK)
    writer.block(False, 0, 8 * BLOCK, 4 * BLOCK, 20 * BLOCK)
    use(writer, 9, 1, 0, 4)
    assert blocks(decided(core, writer), "discard") == {(0, b) for b in range(8, 12)}
    assert core.statistics().block_mismatches == 0


def test_a_discard_that_was_refused_leaves_the_block_where_it_was() -> None:
    core, writer = start()
    fill(core, writer)
    writer.block(False, 0, 8 * BLOCK, 4 * BLOCK, 20 * BLOCK)
    use(writer, 9, 1, 0, 4)
    refused = [c for c in decided(core, writer) if c.kind == "discard"]
    for command in refused:
        writer.moved(command.id, 2)
    core.process(writer.take())
    assert all(core.block_state(0, b) == Core.RESIDENT | Core.POPULATED for b in range(8, 12))


REFUSED, CANCELLED = 4, 2


def die_and_make_room(writer: EventWriter, times: int, hash: int) -> None:
    """PyTorch's third block is used, dies and is handed out again, while others need its room."""
    for _ in range(times):
        use(writer, 2, 0, 8, 4)
        writer.block(False, 0, 8 * BLOCK, 4 * BLOCK, 20 * BLOCK)
        use(writer, hash, 1, 0, 8)
        use(writer, hash + 1, 0, 0, 8)
        writer.block(True, 0, 8 * BLOCK, 4 * BLOCK, 24 * BLOCK)


def answer(core: Core, writer: EventWriter, commands: list[Command], status: int) -> None:
    for command in commands:
        if command.kind == "discard":
            writer.moved(command.id, status)
    core.process(writer.take())


@pytest.mark.parametrize("order", [0, 1, 2])
def test_where_discards_are_refused_the_dead_are_evicted_and_none_is_asked_for_again(
    order: int,
) -> None:
    core, writer = start(eviction_order=order)
    fill(core, writer)
    writer.block(False, 0, 8 * BLOCK, 4 * BLOCK, 20 * BLOCK)
    use(writer, 9, 1, 0, 4)
    discards = decided(core, writer)
    assert blocks(discards, "discard") == {(0, b) for b in range(8, 12)}
    answer(core, writer, discards, REFUSED)
    assert core.statistics().discards_undone == 4
    writer.block(True, 0, 8 * BLOCK, 4 * BLOCK, 24 * BLOCK)
    die_and_make_room(writer, 50, 20)
    commands = decided(core, writer)
    assert not blocks(commands, "discard")
    assert {(0, b) for b in range(8, 12)} <= blocks(commands, "evict")


def test_an_answer_that_refuses_what_is_no_discard_says_nothing_of_discards() -> None:
    core, writer = start()
    fill(core, writer)
    use(writer, 8, 1, 4, 4)
    for command in decided(core, writer):
        writer.moved(command.id, REFUSED)
    writer.block(False, 0, 8 * BLOCK, 4 * BLOCK, 20 * BLOCK)
    use(writer, 9, 0, 16, 8)
    assert blocks(decided(core, writer), "discard") == {(0, b) for b in range(8, 12)}


def test_a_discard_that_is_cancelled_behind_one_that_was_made_is_no_reason_to_wait_longer() -> None:
    core, writer = start()
    fill(core, writer)
    attempts = []
    for launch in range(2000):
        use(writer, 1, 0, 4, 4)
        writer.block(False, 0, 4 * BLOCK, 4 * BLOCK, 20 * BLOCK)
        use(writer, 2, 0, 12, 4)
        writer.block(False, 0, 12 * BLOCK, 4 * BLOCK, 16 * BLOCK)
        use(writer, 20, 1, 0, 8)
        commands = decided(core, writer)
        discards = [one for one in commands if one.kind == "discard"]
        if discards:
            attempts.append(3 * launch)
            assert len(discards) > 1
            answer(core, writer, discards[-1:], CANCELLED)
        writer.block(True, 0, 12 * BLOCK, 4 * BLOCK, 20 * BLOCK)
        writer.block(True, 0, 4 * BLOCK, 4 * BLOCK, 24 * BLOCK)
        use(writer, 21, 0, 16, 8)
    assert max(after - before for before, after in itertools.pairwise(attempts)) < 4 * 64


def test_discards_that_are_cancelled_are_tried_again_ever_more_seldom() -> None:
    core, writer = start()
    fill(core, writer)
    attempts = []
    for launch in range(2000):
        die_and_make_room(writer, 1, 20)
        commands = decided(core, writer)
        if blocks(commands, "discard"):
            attempts.append(3 * launch)
            # Still dead when the answer comes.
            writer.block(False, 0, 8 * BLOCK, 4 * BLOCK, 20 * BLOCK)
            answer(core, writer, commands, CANCELLED)
            writer.block(True, 0, 8 * BLOCK, 4 * BLOCK, 24 * BLOCK)
    gaps = [after - before for before, after in itertools.pairwise(attempts)]
    assert len(gaps) >= 4
    assert all(later >= 1.8 * earlier for earlier, later in itertools.pairwise(gaps[1:]))
