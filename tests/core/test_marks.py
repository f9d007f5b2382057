"""Marks behind the ranges of a launch: which of them are declared to be only read."""

from __future__ import annotations

from deepum._core import lib
from hypothesis import given
from hypothesis import strategies as st

from deepum.core import UM_BLOCK_BYTES, BlockRange, Core, CoreSettings, EventWriter, Execute, events

BLOCKS = 64
RANGES = [BlockRange(0, 4 * i, 4) for i in range(BLOCKS // 4)]


def program() -> tuple[Core, EventWriter]:
    """Memory of PyTorch, whose blocks the core names: four UM blocks each."""
    core, writer = Core(CoreSettings.default(writes=lib.DEEPUM_WRITES_BY_OPERATORS)), EventWriter()
    writer.device(1 << 10)
    writer.allocate(0, BLOCKS)
    size = 4 * UM_BLOCK_BYTES
    for i in range(len(RANGES)):
        writer.block(True, 0, i * size, size, (i + 1) * size, BLOCKS * UM_BLOCK_BYTES)
    return core, writer


def executions(core: Core, writer: EventWriter) -> int:
    core.process(writer.take())
    return int(core.statistics().execution_ids)


def test_a_launch_is_the_same_execution_with_marks_and_without() -> None:
    core, writer = program()
    for declared in ((), (1,), (0, 2), (0, 1, 2)):
        writer.execute(7, RANGES[:3], declared=declared)
    assert executions(core, writer) == 1
    # In another order, as where read ranges come before unknown ones, it is another.
    writer.execute(7, RANGES[:2], read=RANGES[2:3])
    assert executions(core, writer) == 2


def test_what_was_marked_once_is_known_to_be_read() -> None:
    core, writer = program()
    for declared in ((), (), (1, 2), ()):
        writer.execute(7, RANGES[:3], declared=declared)
        writer.execute(8, RANGES[3:5])
    core.process(writer.take())
    core.record(2)
    for _ in range(2):
        writer.execute(7, RANGES[:3])
        writer.execute(8, RANGES[3:5])
    core.process(writer.take())
    recorded = core.recorded()
    assert recorded is not None
    assert recorded.blocks_read == 8


@given(st.sets(st.integers(0, 200)), st.integers(0, 200))
def test_marks_are_written_and_read(places: set[int], ranges: int) -> None:
    writer = EventWriter()
    given = {place for place in places if place < ranges}
    writer.execute(7, [BlockRange(0, i, 1) for i in range(ranges)], declared=given)
    (launch,) = events(writer.take())
    assert isinstance(launch, Execute)
    assert len(launch.unknown) == ranges and launch.declared == tuple(sorted(given))


def test_marks_that_end_behind_their_record_are_malformed() -> None:
    core, writer = program()
    writer.execute(7, RANGES[:3], declared=(2,))
    record = bytearray(writer.take())
    core.process(bytes(record))
    at = len(record) - 8 * 4 - 6  # the number of words with marks, behind three counts
    before = core.statistics().malformed_events
    assert record[at] == 1
    record[at] = 2
    core.process(bytes(record))
    assert core.statistics().malformed_events == before + 1
