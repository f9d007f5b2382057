"""What the core counts for budgets."""

from __future__ import annotations

from deepum.core import BlockRange, Core, EventWriter

CAPACITY = 8


def over(core: Core, writer: EventWriter, *ranges: tuple[int, int, int]) -> int:
    """Launches over the capacity after one of these (slot, first, count)."""
    writer.execute(1, [BlockRange(*each) for each in ranges])
    core.process(writer.take())
    return core.statistics().launches_over_capacity


def test_a_launch_counts_each_block_once() -> None:
    core, writer = Core(), EventWriter()
    writer.device(CAPACITY)
    writer.allocate(0, 6)
    writer.allocate(1, 6)
    assert over(core, writer, (0, 0, 6)) == 0
    assert over(core, writer, (0, 0, 6), (0, 0, 6), (0, 2, 3)) == 0  # the same blocks
    assert over(core, writer, (1, 0, 2), (0, 0, 6), (1, 0, 2)) == 0  # just the capacity
    assert over(core, writer, (1, 0, 3), (0, 0, 6)) == 1
    assert over(core, writer, (0, 0, 4), (1, 1, 4), (0, 2, 4)) == 2  # overlapping: six and four


def test_capacity_is_what_it_was_last_told() -> None:
    core, writer = Core(), EventWriter()
    writer.device(CAPACITY)
    writer.allocate(0, 7)
    assert over(core, writer, (0, 0, 7)) == 0
    writer.capacity(6)
    assert over(core, writer, (0, 0, 7)) == 1
    writer.capacity(7)
    assert over(core, writer, (0, 0, 7)) == 1


def test_devices_have_capacities_of_their_own() -> None:
    core, writer = Core(), EventWriter()
    writer.device(CAPACITY)
    writer.device(CAPACITY, device=1)
    writer.allocate(0, 8)
    writer.allocate(1, 8, device=1)
    assert over(core, writer, (0, 0, 8), (1, 0, 8)) == 0


def test_the_largest_overshoot_is_kept() -> None:
    core, writer = Core(), EventWriter()
    for used in (90, 130, 110, 100):
        writer.usage(used, 100)
    core.process(writer.take())
    assert core.statistics().budget_overshoot_bytes == 30
    assert core.statistics().malformed_events == 0
