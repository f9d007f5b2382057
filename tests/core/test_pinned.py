"""What the program prefers on the device leaves behind all else, until its content dies."""

from __future__ import annotations

import pytest
from deepum._core import lib

from deepum.core import UM_BLOCK_BYTES, BlockRange, Core, CoreSettings, EventWriter

SET_PREFERRED_LOCATION, UNSET_PREFERRED_LOCATION = 3, 4
CAPACITY = 12
WANTED = BlockRange(0, 0, 4)
ORDERS = pytest.mark.parametrize(
    "order",
    [
        lib.DEEPUM_EVICT_FURTHEST_NEXT_USE,
        lib.DEEPUM_EVICT_OLDEST_LAST_USE,
        lib.DEEPUM_EVICT_LEAST_RECENTLY_MIGRATED,
    ],
)


class Program:
    """Slot 0 holds four blocks, slot 1 more than the device can."""

    def __init__(self, order: int) -> None:
        self.core = Core(
            CoreSettings.default(headroom_blocks=0, launch_queue=0, eviction_order=order)
        )
        self.writer = EventWriter()
        self.writer.device(CAPACITY)
        self.writer.allocate(0, 4)
        self.writer.allocate(1, 20)
        self.launch(1, WANTED)

    def launch(self, execution: int, where: BlockRange) -> None:
        self.writer.execute(execution, unknown=(where,))
        self.process()

    def advise(self, advice: int, location: int = 0, where: BlockRange = WANTED) -> None:
        self.writer.program_advise(where, location, advice)
        self.process()

    def process(self) -> None:
        self.core.process(self.writer.take())
        self.core.take_commands()

    def sweep(self) -> None:
        """Over slot 1, twice, two blocks at a time."""
        for _ in range(2):
            for first in range(0, 20, 2):
                self.launch(100 + first, BlockRange(1, first, 2))

    def resident(self, where: BlockRange = WANTED) -> int:
        """Blocks."""
        blocks = range(where.first, where.first + where.count)
        return sum(
            bool(self.core.block_state(where.slot, block) & Core.RESIDENT) for block in blocks
        )


@ORDERS
def test_what_is_pinned_stays_and_the_rest_leaves(order: int) -> None:
    program = Program(order)
    program.sweep()
    assert program.resident() == 0
    program.launch(1, WANTED)
    program.advise(SET_PREFERRED_LOCATION)
    program.sweep()
    assert program.resident() == 4
    assert program.core.statistics().resident_bytes <= CAPACITY * UM_BLOCK_BYTES
    program.advise(UNSET_PREFERRED_LOCATION)
    program.sweep()
    assert program.resident() == 0


@ORDERS
def test_what_is_pinned_while_it_is_away_stays_once_it_is_back(order: int) -> None:
    program = Program(order)
    program.sweep()
    program.advise(SET_PREFERRED_LOCATION)
    program.launch(1, WANTED)
    program.sweep()
    assert program.resident() == 4


@ORDERS
def test_a_launch_that_needs_it_all_takes_what_is_pinned(order: int) -> None:
    program = Program(order)
    program.advise(SET_PREFERRED_LOCATION)
    whole = BlockRange(1, 0, CAPACITY)
    program.launch(2, whole)
    assert program.resident(whole) == CAPACITY
    assert program.resident() == 0


@ORDERS
def test_preferring_another_place_pins_nothing(order: int) -> None:
    program = Program(order)
    program.advise(SET_PREFERRED_LOCATION, location=1)
    program.sweep()
    assert program.resident() == 0


@ORDERS
def test_the_next_tensor_in_its_place_is_not_pinned(order: int) -> None:
    program = Program(order)
    size = 4 * UM_BLOCK_BYTES
    program.writer.block(True, 0, 0, size, size, size)
    program.advise(SET_PREFERRED_LOCATION)
    program.sweep()
    assert program.resident() == 4
    program.writer.block(False, 0, 0, size, 0, size)
    program.writer.block(True, 0, 0, size, size, size)
    program.launch(1, WANTED)
    program.sweep()
    assert program.resident() == 0
