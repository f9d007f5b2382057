"""Whose space is taken, by next use: what is fetched takes that of what left, and leaves that of
the dead to content that comes soon.
"""

from __future__ import annotations

import pytest
from duplicating import blocks, span

from deepum.core import UM_BLOCK_BYTES, BlockRange, Command, Core, CoreSettings, EventWriter

OLDEST_LAST_USE, FURTHEST_NEXT_USE = 1, 2
TABLES = 0
CANCELLED = 2
SOON = 64  # launches looked at
SHARE = 64  # part of the device that is kept


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("fetched", [True, False])
def test_prefetches_take_the_space_of_what_left_and_populations_that_of_the_dead(
    fetched: bool, order: int
) -> None:
    """By next use; in the other orders both take that of the dead first. There is space of each for
    either.
    """
    core, writer = (
        Core(CoreSettings.default(headroom_blocks=0, eviction_order=order)),
        EventWriter(),
    )
    writer.device(16)
    writer.allocate(0, 4)
    writer.allocate(1, 40)
    writer.block(True, 0, 0, 4 * UM_BLOCK_BYTES, 4 * UM_BLOCK_BYTES)
    writer.execute(1, [BlockRange(1, 0, 12)])
    writer.execute(2, [BlockRange(0, 0, 4)])
    writer.execute(3, [BlockRange(1, 12, 1)])  # eight leave for it
    writer.block(False, 0, 0, 4 * UM_BLOCK_BYTES, 0)
    core.process(writer.take())
    core.take_commands()
    away = next(block for block in range(12) if not core.block_state(1, block) & Core.RESIDENT)
    if order != FURTHEST_NEXT_USE:
        # There nobody discards what there is room without: the next that needs some takes what the
        # last left, until it is used up.
        writer.execute(4, [BlockRange(1, 20, 7), BlockRange(1, 30, 1)])
    writer.execute(5, [BlockRange(1, away if fetched else 13, 1)])
    core.process(writer.take())
    commands = core.take_commands()
    (dropped,) = {c.id for c in commands if c.kind == "discard"}
    assert blocks(commands, "discard") == span(0, 0, 4)
    kind = "prefetch" if fetched else "populate"
    waits = [c.after_move for c in commands if c.kind == kind and c.block_count == 0]
    assert waits == ([] if order == FURTHEST_NEXT_USE and fetched else [dropped])


class Loop:
    """A card of 256 blocks under a loop that makes content: a tensor of `dying` blocks dies, blocks
    of slot 1 are fetched, and `later` launches behind that a tensor of `coming` blocks comes into
    being, of slot 0 as well, on that device; then it dies. Slot 1 has 320 blocks, all of which an
    iteration uses; slot 2 is another device's.
    """

    CAPACITY = 256
    FETCH, COME = 500, 600  # executions

    def __init__(
        self, dying: int = 4, coming: int = 4, later: int = 2, device: int = 0, **settings: int
    ) -> None:
        self.dying, self.coming, self.later, self.on = dying, coming, later, device
        self.core = Core(
            CoreSettings.default(
                **{"headroom_blocks": 0, "eviction_order": FURTHEST_NEXT_USE, **settings}
            )
        )
        self.writer = EventWriter()
        self.writer.device(self.CAPACITY)
        self.writer.allocate(0, 32)
        self.writer.allocate(1, 320)
        if device:
            self.writer.device(16, device=device)
            self.writer.allocate(2, 32, device=device)
        for _ in range(4):
            self.begin()
            self.fetch(BlockRange(1, 0, 8))
            self.end()

    def decided(self) -> list[Command]:
        self.core.process(self.writer.take())
        return self.core.take_commands()

    def tensor(self, active: bool, slot: int, first: int, count: int) -> None:
        size = count * UM_BLOCK_BYTES
        # One at a time.
        self.writer.block(active, slot, first * UM_BLOCK_BYTES, size, size if active else 0)

    def begin(self) -> None:
        """Up to the first tensor's death."""
        for i in range(40):
            self.writer.execute(100 + i, [BlockRange(1, 8 * i, 8)])
        self.tensor(True, 0, 0, self.dying)
        self.writer.execute(200, [BlockRange(0, 0, self.dying)])
        for i in range(40):
            self.writer.execute(300 + i)
        self.tensor(False, 0, 0, self.dying)
        self.decided()

    def fetch(self, *where: BlockRange) -> list[Command]:
        self.writer.execute(self.FETCH, where)
        return self.decided()

    def end(self) -> list[Command]:
        """What is decided for the new tensor's launch."""
        for i in range(self.later - 1):
            self.writer.execute(700 + i)
        self.decided()
        slot, first = (2, 0) if self.on else (0, 16)
        self.tensor(True, slot, first, self.coming)
        self.writer.execute(self.COME, [BlockRange(slot, first, self.coming)], device=self.on)
        commands = self.decided()
        self.tensor(False, slot, first, self.coming)
        for i in range(80):  # the rest of the iteration
            self.writer.execute(800 + i)
        self.decided()
        return commands

    def away(self, count: int) -> list[BlockRange]:
        """Blocks of slot 1 that have content and are not there."""
        missing = [
            block for block in range(320) if not self.core.block_state(1, block) & Core.RESIDENT
        ]
        assert len(missing) >= count
        return [BlockRange(1, block, 1) for block in missing[:count]]


@pytest.mark.parametrize("fetched", [1, 40])
def test_the_dead_stay_for_content_that_comes_soon(fetched: int) -> None:
    """Whether there is space left, or blocks have to leave for what is fetched."""
    loop = Loop()
    loop.begin()
    commands = loop.fetch(*loop.away(fetched))
    assert len(blocks(commands, "prefetch")) == fetched
    assert blocks(commands, "discard") == []
    assert bool(blocks(commands, "evict")) == (fetched > 8)
    commands = loop.end()
    (dropped,) = [c for c in commands if c.kind == "discard"]
    assert blocks([dropped], "discard") == span(0, 0, 4)
    assert [c.after_move for c in commands if c.kind == "populate" and c.block_count == 0] == [
        dropped.id
    ]
    assert blocks(commands, "populate") == span(0, 16, 4)


@pytest.mark.parametrize("fetched", [1, 40])
@pytest.mark.parametrize(
    "changes",
    [
        {"coming": 3},  # fewer than died
        {"dying": 5, "coming": 5},  # one more than the share that is kept
        {"later": SOON + 1},
        {"device": 1},
        {"prediction": TABLES},  # they do not tell
    ],
    ids=str,
)
def test_else_they_go_first(fetched: int, changes: dict[str, int]) -> None:
    loop = Loop(**changes)
    loop.begin()
    gone = blocks(loop.fetch(*loop.away(fetched)), "discard")
    assert gone == span(0, 0, 1 if "dying" in changes else 4)


@pytest.mark.parametrize("order", [0, OLDEST_LAST_USE])
def test_in_the_other_orders_they_go_first(order: int) -> None:
    loop = Loop(eviction_order=order)
    loop.begin()
    assert blocks(loop.fetch(*loop.away(40)), "discard") == span(0, 0, 4)


@pytest.mark.parametrize("populated", [1, 12])
def test_other_content_that_comes_before_takes_their_space(populated: int) -> None:
    """Whether there is space left, or not."""
    loop = Loop()
    loop.begin()
    commands = loop.fetch(BlockRange(0, 20, populated))
    assert blocks(commands, "populate") == span(0, 20, populated)
    assert blocks(commands, "discard") == span(0, 0, 4)


@pytest.mark.parametrize("later", [2, SOON - 1])
def test_what_comes_soon_is_the_most_that_there_is_on_the_way(later: int) -> None:
    """It dies again right behind its launch."""
    assert SHARE * 4 == Loop.CAPACITY
    loop = Loop(later=later)
    loop.begin()
    assert blocks(loop.fetch(*loop.away(1)), "discard") == []


def test_they_go_if_nothing_else_can() -> None:
    """The launch needs all else that is there."""
    loop = Loop()
    loop.begin()
    there = [
        BlockRange(1, block, 1)
        for block in range(320)
        if loop.core.block_state(1, block) & Core.RESIDENT
    ]
    missing = Loop.CAPACITY - len(there)
    wanted = loop.away(missing)
    commands = loop.fetch(*there, *wanted)
    assert blocks(commands, "discard") == span(0, 0, 4)
    assert {(1, each.first) for each in wanted} <= set(blocks(commands, "prefetch"))


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("fetched", [True, False])
def test_what_leaves_for_a_discard_that_was_undone_leaves_no_space(
    fetched: bool, order: int
) -> None:
    """The discard's space was another's already, so that what leaves after it makes up for that.
    What comes later waits for what leaves for itself: else it would come before there is room, and
    the driver would evict what it likes, from then on in each iteration.
    """
    core, writer = (
        Core(CoreSettings.default(headroom_blocks=0, eviction_order=order)),
        EventWriter(),
    )
    size = 8 * UM_BLOCK_BYTES
    writer.device(32)
    writer.allocate(0, 8)
    writer.allocate(1, 80)
    writer.block(True, 0, 0, size, size)
    for block in range(0, 48, 8):
        writer.execute(1 + block, [BlockRange(1, block, 8)])
    writer.execute(50, [BlockRange(0, 0, 8)])
    writer.block(False, 0, 0, size, 0)
    core.process(writer.take())
    core.take_commands()
    writer.execute(51, [BlockRange(1, 48, 8)])
    core.process(writer.take())
    dropped = [c.id for c in core.take_commands() if c.kind == "discard"]
    assert dropped
    writer.block(True, 0, 0, size, size)
    for command in dropped:
        writer.moved(command, CANCELLED)
    core.process(writer.take())
    surplus = [c for c in core.take_commands() if c.kind == "evict"]
    assert len(blocks(surplus, "evict")) == 8
    missing = [block for block in range(48) if not core.block_state(1, block) & Core.RESIDENT]
    writer.execute(
        52, [BlockRange(1, block, 1) for block in (missing[:8] if fetched else range(56, 64))]
    )
    core.process(writer.take())
    commands = core.take_commands()
    came = [
        c for c in commands if c.kind == ("prefetch" if fetched else "populate") and c.block_count
    ]
    own = {c.id for c in commands if c.kind == "evict"}
    assert sum(c.block_count for c in came) == 8
    assert {c.after_move for c in came} <= own, "of their own evictions"
    assert core.statistics().resident_bytes <= 32 * UM_BLOCK_BYTES
