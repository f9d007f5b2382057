"""What has no content is populated: in a direction of its own, which waits, and is waited for,
apart from the prefetches.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from duplicating import blocks, span
from programs import Launch, write
from test_reference import compare

from deepum.core import UM_BLOCK_BYTES, BlockRange, Command, Core, CoreSettings, EventWriter

OLDEST_LAST_USE = 1
FAILED = 2
REMEMBERED = 4096  # commands
TORCH = 8  # blocks of slot 0, which are PyTorch's


class Card:
    """A card of 16 blocks, full of what was used oldest first: of slot 0, PyTorch's memory, 8
    blocks, then of slot 1.
    """

    def __init__(self, **settings: int) -> None:
        self.core = Core(
            CoreSettings.default(
                **{"headroom_blocks": 0, "eviction_order": OLDEST_LAST_USE, **settings}
            )
        )
        self.writer = EventWriter()
        self.writer.device(16)
        self.writer.allocate(0, TORCH)
        self.writer.allocate(1, 40)
        self.writer.block(True, 0, 0, TORCH * UM_BLOCK_BYTES, TORCH * UM_BLOCK_BYTES)
        self.launch(1, BlockRange(0, 0, TORCH))
        self.launch(2, BlockRange(1, 0, 16 - TORCH))

    def launch(self, execution: int, *ranges: BlockRange) -> list[Command]:
        self.writer.execute(execution, ranges)
        self.core.process(self.writer.take())
        return self.core.take_commands()

    def dies(self) -> None:
        """All of PyTorch's memory."""
        self.writer.block(False, 0, 0, TORCH * UM_BLOCK_BYTES, 0)


def waits(commands: Sequence[Command], kind: str) -> list[int]:
    """What commands of that kind that name no blocks wait for."""
    return [c.after_move for c in commands if c.kind == kind and c.block_count == 0]


def test_what_has_no_content_is_populated_and_what_has_some_is_prefetched() -> None:
    card = Card()
    card.launch(3, BlockRange(1, 8, 8))  # slot 0 leaves
    commands = card.launch(4, BlockRange(0, 0, 4), BlockRange(1, 16, 4))
    assert blocks(commands, "prefetch") == span(0, 0, 4)
    assert blocks(commands, "populate") == span(1, 16, 4)
    assert card.core.statistics().bytes_prefetched == 32 * UM_BLOCK_BYTES, "both count"


def test_what_died_on_the_host_is_populated_again() -> None:
    """A discard drops what it had."""
    card = Card()
    card.launch(3, BlockRange(1, 8, 8))
    card.dies()
    card.writer.block(True, 0, 0, TORCH * UM_BLOCK_BYTES, TORCH * UM_BLOCK_BYTES)
    commands = card.launch(4, BlockRange(0, 0, 4))
    assert blocks(commands, "discard") == span(0, 0, TORCH)
    assert blocks(commands, "populate") == span(0, 0, 4)
    assert blocks(commands, "prefetch") == []


def left_and_dead(**settings: int) -> Card:
    """Of eight blocks that left the space of two is free still; then eight others die."""
    card = Card(**settings)
    card.launch(3, BlockRange(0, 0, TORCH))  # used last
    assert blocks(card.launch(4, BlockRange(1, 8, 6)), "evict") == span(1, 0, 8)
    card.dies()
    return card


def test_a_prefetch_does_not_wait_for_the_discard_that_populations_before_it_wait_for() -> None:
    """They take the space of what left and of all the dead; it takes that of what leaves for it."""
    card = left_and_dead()
    commands = card.launch(5, BlockRange(1, 16, 10))
    (dropped,) = [c.id for c in commands if c.kind == "discard"]
    assert waits(commands, "populate") == [dropped]
    commands = card.launch(6, BlockRange(1, 0, 2))
    evicted = [c.id for c in commands if c.kind == "evict"]
    assert waits(commands, "prefetch") == []
    assert {c.after_move for c in commands if c.kind == "prefetch"} <= set(evicted)
    assert blocks(commands, "prefetch") == span(1, 0, 2)


def test_each_kind_waits_for_the_discard_whose_space_it_takes() -> None:
    """Both take space of one discard: an empty command for each."""
    card = left_and_dead()
    commands = card.launch(5, BlockRange(1, 16, 4), BlockRange(1, 0, 4))
    (dropped,) = [c.id for c in commands if c.kind == "discard"]
    assert waits(commands, "populate") == waits(commands, "prefetch") == [dropped]
    for kind in ("populate", "prefetch"):
        last = [c for c in commands if c.kind == kind][-1]
        assert last.block_count > 0 and last.id > min(
            c.id for c in commands if c.kind == kind and c.block_count == 0
        )
    again = card.launch(6, BlockRange(1, 20, 1), BlockRange(1, 4, 1))
    assert waits(again, "populate") == waits(again, "prefetch") == [], "what follows is behind it"


@pytest.mark.parametrize("fresh_first", [True, False])
def test_a_launch_is_held_for_its_latest_prefetch_and_for_its_latest_population(
    fresh_first: bool,
) -> None:
    """Whichever was given first."""
    card = Card()
    card.launch(3, BlockRange(1, 8, 8))
    fresh, known = BlockRange(1, 16, 4), BlockRange(0, 0, 4)
    commands = card.launch(4, *((fresh, known) if fresh_first else (known, fresh)))
    brought = [
        next(c for c in reversed(commands) if c.kind == kind).id
        for kind in ("prefetch", "populate")
    ]
    assert (brought[0] > brought[1]) == fresh_first
    holds = [c for c in commands if c.kind == "hold"]
    assert [hold.after_move for hold in holds] == brought
    assert all((hold.cause, hold.stream_mask) == (card.writer.sequence, 1) for hold in holds)
    assert card.core.statistics().holds >= 2
    assert [c for c in card.launch(5, known, fresh) if c.kind == "hold"] == [], (
        "held for these before"
    )


def test_a_hold_tells_whether_what_it_waits_for_is_behind_launches_of_other_streams() -> None:
    """As in a program whose gradients are reduced on streams of their own: without it its launches
    would not wait for what they need.
    """
    writer = EventWriter()
    core = Core(CoreSettings.default(headroom_blocks=0, eviction_order=OLDEST_LAST_USE))
    writer.device(16)
    writer.allocate(0, 40)
    advice = []
    for execution, stream in enumerate((0, 1, 0, 0, 0)):
        writer.execute(execution, [BlockRange(0, 8 * execution, 8)], stream=stream)
        core.process(writer.take())
        advice.append([c.advice for c in core.take_commands() if c.kind == "hold"])
    # What leaves for the third and for the fourth was used by the streams 0 and 1.
    assert advice == [[0], [0], [0], [1], [1]]


def doubted(confidence: int, idle: int, first: Sequence[Launch]) -> tuple[Core, bytes]:
    """Block 0 is brought by the last of these launches, and then used by `idle` launches, each new,
    that bring others in turn.
    """
    core, writer = (
        Core(
            CoreSettings.default(
                headroom_blocks=0, eviction_order=OLDEST_LAST_USE, confidence_launches=confidence
            )
        ),
        EventWriter(),
    )
    writer.device(6)
    writer.allocate(0, 64)
    turns = [
        Launch(1000 + i, (BlockRange(0, 0, 1), BlockRange(0, 8 + 2 * (i % 20), 1)))
        for i in range(idle)
    ]
    return core, writer.take() + write(writer, [*first, *turns])


POPULATED = [Launch(1, (BlockRange(0, 0, 1),))]
PREFETCHED = [
    *POPULATED,
    *[Launch(2 + i, (BlockRange(0, 8 + 2 * i, 1),)) for i in range(12)],
    *POPULATED,
]


@pytest.mark.parametrize(
    ("first", "confidence", "expected"),
    [
        (POPULATED, 100, "populate"),
        (PREFETCHED, 100, "prefetch"),
        (POPULATED, 3500, "populate"),  # however long ago that was
    ],
)
def test_a_block_in_doubt_comes_as_it_came_the_last_time(
    first: list[Launch], confidence: int, expected: str
) -> None:
    """Its population may be on its way still: a prefetch would overtake it, into space that is not
    free yet.
    """
    core, records = doubted(confidence, confidence + 10, first)
    core.process(records)
    of_block = [
        c
        for c in core.take_commands()
        if c.kind in ("prefetch", "populate") and (c.first_block, c.block_count) == (0, 1)
    ]
    assert core.statistics().bytes_prefetched_again == UM_BLOCK_BYTES
    assert of_block[-1].kind == expected
    assert (of_block[-1].id - of_block[-2].id > REMEMBERED) == (confidence > 1000)


def test_so_says_the_plain_one_for_what_was_long_ago() -> None:
    _, records = doubted(3500, 3600, POPULATED)
    for order in (OLDEST_LAST_USE, 2):
        compare(
            CoreSettings.default(headroom_blocks=0, eviction_order=order, confidence_launches=3500),
            records,
        )


def test_a_population_that_failed_is_not_believed() -> None:
    card = Card()
    (given,) = [c for c in card.launch(3, BlockRange(1, 8, 2)) if c.kind == "populate"]
    card.writer.moved(given.id, FAILED)
    card.core.process(card.writer.take())
    assert not any(card.core.block_state(1, block) & Core.RESIDENT for block in (8, 9))


def test_where_the_driver_evicts_there_is_one_direction() -> None:
    """It goes by the order of what comes, so that must be the one decided."""
    card = Card(pre_eviction=0)
    commands = card.launch(3, BlockRange(1, 8, 8)) + card.launch(
        4, BlockRange(0, 0, 4), BlockRange(1, 16, 4)
    )
    assert {c.kind for c in commands} == {"prefetch", "hold"}
