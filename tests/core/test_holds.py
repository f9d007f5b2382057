"""When launches are held no longer: once memory has not been short for two iterations."""

from __future__ import annotations

import pytest

from deepum.core import BlockRange, Command, Core, CoreSettings, EventWriter

OLDEST_LAST_USE = 1
LEAST = 256  # launches for which an iteration counts, at least


class Program:
    """Of iterations of so many launches, over a card of 16 blocks, of which each uses 12: memory is
    short while a second allocation of as many is there.
    """

    def __init__(self, launches: int) -> None:
        self.launches = launches
        self.core = Core(CoreSettings.default(headroom_blocks=0, eviction_order=OLDEST_LAST_USE))
        self.writer = EventWriter()
        self.writer.device(16)
        self.writer.allocate(0, 12)
        self.generation = 0
        self.more()

    def more(self) -> None:
        self.generation += 1
        self.writer.allocate(1, 12, generation=self.generation)

    def less(self) -> None:
        self.writer.free(1, self.generation)

    def launch(self, at: int, slot: int) -> list[Command]:
        block = BlockRange(slot, at % 12, 1)
        self.writer.execute(slot * self.launches + at + 1, [block])
        self.core.process(self.writer.take())
        return [c for c in self.core.take_commands() if c.kind == "hold"]

    def held(self, short: bool) -> list[list[Command]]:
        """By each launch of an iteration, of which half uses the other memory."""
        return [
            self.launch(at, int(short and at >= self.launches // 2)) for at in range(self.launches)
        ]


def before(program: Program) -> None:
    held = [holds for _ in range(6) for holds in program.held(short=True)]
    assert any(held) and all(hold.stream_mask == 1 for holds in held for hold in holds)


@pytest.mark.parametrize("launches", [32, 300])
def test_launches_are_held_no_longer_two_iterations_after_memory_was_short(launches: int) -> None:
    program = Program(launches)
    before(program)
    program.less()
    held = [holds for _ in range(40) for holds in program.held(short=False)]
    (end,) = [i for i, holds in enumerate(held) if holds]
    ((hold,),) = (held[end],)
    assert hold.stream_mask == hold.after_move == hold.block_count == 0
    period = max(launches, LEAST)
    assert 2 * period - launches <= end <= 2 * period + launches, "from the last that was held"


def test_a_launch_that_is_held_begins_holds_again() -> None:
    """The second time they end as soon as the first, since the detected iteration counts: the
    longest way back to a launch is all of the phase between.
    """
    program = Program(200)
    before(program)
    for _ in range(2):
        program.less()
        held = [holds for _ in range(10) for holds in program.held(short=False)]
        (end,) = [i for i, holds in enumerate(held) if holds]
        assert [hold.stream_mask for hold in held[end]] == [0] and end < 1000
        program.more()
        before(program)


def test_while_memory_is_short_holds_do_not_end() -> None:
    """However long no launch has been held, one may be at any time."""
    program = Program(32)
    before(program)
    held = [h for _ in range(40) for holds in program.held(short=False) for h in holds]
    assert all(hold.stream_mask == 1 for hold in held)


def test_where_no_launch_was_held_no_holds_end() -> None:
    program = Program(32)
    program.less()
    assert not any(holds for _ in range(40) for holds in program.held(short=False))
