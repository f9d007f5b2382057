"""Without pre-eviction the driver makes the room: nothing is evicted by command, and what goes for
each block that comes is known.
"""

from __future__ import annotations

from collections import OrderedDict

import pytest
from programs import sweep, there_and_back, write

from deepum.core import BlockRange, Command, Core, CoreSettings, EventWriter, Execute, events

Key = tuple[int, int]  # slot, UM block
LEAST_RECENTLY_MIGRATED = 0
BLOCKS = 24


class Driver:
    """Evicts what was migrated longest ago for what is prefetched where memory is full; a prefetch
    of what is there counts as one.
    """

    def __init__(self, capacity: int, **changes: int) -> None:
        self.capacity = capacity
        self.core = Core(
            CoreSettings.default(pre_eviction=0, eviction_order=LEAST_RECENTLY_MIGRATED, **changes)
        )
        self.writer = EventWriter()
        self.writer.device(capacity)
        self.writer.allocate(0, BLOCKS)
        self.core.process(self.writer.take())
        self.resident: OrderedDict[Key, None] = OrderedDict()
        self.last_use: dict[Key, int] = {}
        self.kinds: set[str] = set()
        self.evicted = 0
        self.too_early: list[Key] = []
        self.missing = 0

    def launch(self, record: bytes) -> None:
        (event,) = events(record)
        assert isinstance(event, Execute)
        self.core.process(record)
        commands = self.core.take_commands()
        before = next(
            (i for i, command in enumerate(commands) if command.after_sequence >= event.sequence),
            len(commands),
        )
        self.carry_out(commands[:before])
        for r in event.ranges:
            for key in ((r.slot, block) for block in range(r.first, r.first + r.count)):
                self.missing += key not in self.resident
                self.last_use[key] = event.sequence
        self.carry_out(commands[before:])

    def wait(self) -> None:
        self.writer.synchronise()
        self.core.process(self.writer.take())
        self.carry_out(self.core.take_commands())

    def carry_out(self, commands: list[Command]) -> None:
        for command in commands:
            self.kinds.add(command.kind)
            for block in range(command.first_block, command.first_block + command.block_count):
                key = command.slot, block
                if key not in self.resident and len(self.resident) == self.capacity:
                    victim, _ = self.resident.popitem(last=False)
                    self.evicted += 1
                    if self.last_use.get(victim, 0) > command.after_sequence:
                        self.too_early.append(victim)
                self.resident[key] = None
                self.resident.move_to_end(key)


@pytest.mark.parametrize("prediction", [0, 1])
@pytest.mark.parametrize("capacity", [7, 16, 23])
@pytest.mark.parametrize("queue", [0, 1024])
def test_the_belief_is_what_the_driver_does(prediction: int, capacity: int, queue: int) -> None:
    """Every launch finds its blocks, though nothing but prefetches is commanded, and none of them
    takes a place that is still used.
    """
    driver = Driver(capacity, prediction=prediction, launch_queue=queue, prefetch_degree=4)
    for _ in range(6):
        for launch in there_and_back(BLOCKS, 8):
            driver.launch(write(driver.writer, [launch]))
        driver.wait()
    assert driver.evicted > 0
    assert (driver.missing, driver.too_early) == (0, [])
    assert driver.kinds <= {"prefetch", "hold"}


def test_what_a_launch_needs_is_renewed_where_it_would_go_for_the_rest_of_it() -> None:
    """The oldest block is one that the launch needs, with one that is missing: the second oldest
    goes.
    """
    driver = Driver(8, prefetch_degree=0)
    for launch in sweep(8, 8):
        driver.launch(write(driver.writer, [launch]))
    driver.writer.execute(1, [BlockRange(0, 0, 1), BlockRange(0, 8, 1)])
    driver.launch(driver.writer.take())
    assert driver.missing == 0
    assert (0, 1) not in driver.resident and (0, 0) in driver.resident


def test_a_launch_larger_than_memory_is_left_to_the_driver() -> None:
    driver = Driver(4, prefetch_degree=0)
    for _ in range(3):
        driver.writer.execute(1, [BlockRange(0, 0, 6)])
        driver.launch(driver.writer.take())
    assert driver.core.statistics().launches_over_capacity == 3
    assert driver.kinds <= {"prefetch", "hold"}
