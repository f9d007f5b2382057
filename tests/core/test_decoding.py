"""Records that are read: all of them, or those of one class."""

from __future__ import annotations

import struct

import pytest
from deepum._core import lib

from deepum.core import (
    Allocate,
    Block,
    BlockRange,
    Event,
    EventWriter,
    Execute,
    events,
    events_of,
)

UNKNOWN = 251


def written() -> bytes:
    writer = EventWriter()
    writer.device(16)
    writer.allocate(0, 4)
    writer.block(True, 0, 0, 512, 512, 4 << 21)
    writer.execute(7, [BlockRange(0, 0, 1)])
    writer.record(UNKNOWN, b"")
    writer.execute(8, [BlockRange(0, 1, 2)])
    writer.free(0)
    return writer.take()


def test_those_of_a_class_are_the_same_among_all() -> None:
    everything = list(events(written()))
    assert [event.sequence for event in everything] == list(range(1, 8))
    assert everything[4].kind == f"kind_{UNKNOWN}"
    assert list(events_of(written(), Event)) == everything
    for cls, count in ((Execute, 2), (Allocate, 1), (Block, 1)):
        found = list(events_of(written(), cls))
        assert found == [event for event in everything if isinstance(event, cls)]
        assert len(found) == count


@pytest.mark.parametrize("cls", [Event, Execute])
@pytest.mark.parametrize("words", [0, 1, 255])
def test_an_impossible_length_is_an_error_whatever_is_read(cls: type[Event], words: int) -> None:
    record = struct.pack("<HBBIQ", words, lib.DEEPUM_EVENT_FREE, 0, 0, 8)
    with pytest.raises(ValueError, match=f"at byte {len(written())}: impossible length"):
        list(events_of(written() + record, cls))


def test_a_record_that_is_too_short_is_an_error_where_it_is_read() -> None:
    writer = EventWriter(7)
    writer.record(lib.DEEPUM_EVENT_EXECUTE, b"")
    damaged = written() + writer.take()
    with pytest.raises(ValueError, match="execute event 8: a record of 2 words is too short"):
        list(events_of(damaged, Execute))
    assert len(list(events_of(damaged, Allocate))) == 1
