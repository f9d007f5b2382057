"""Reads event and command records into the objects of deepum.core.records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any, TypeVar, cast

from deepum._core import ffi, lib
from deepum.core.records import (
    COMMAND_BYTES,
    Allocate,
    Block,
    BlockRange,
    Buffer,
    Command,
    Device,
    Event,
    Execute,
    Fault,
    Free,
    FreeMemory,
    Lost,
    Moved,
    Program,
    Progress,
    Setting,
    Stream,
    Usage,
    Waited,
)

_NAMES: dict[int, str] = {
    number: name.removeprefix("DEEPUM_EVENT_").lower()
    for number, name in ffi.typeof("enum deepum_event_kind").elements.items()
}
_SETTINGS: dict[int, str] = {
    number: name.removeprefix("DEEPUM_SETTING_").lower()
    for number, name in ffi.typeof("enum deepum_setting").elements.items()
}
_COMMANDS: dict[int, str] = {
    number: name.removeprefix("DEEPUM_COMMAND_").lower()
    for number, name in ffi.typeof("enum deepum_command_kind").elements.items()
}
_Head = tuple[str, int, int, int]
_Decode = Callable[[_Head, Any, int], Event]
_E = TypeVar("_E", bound=Event)


def _own(cls: type[Event]) -> tuple[str, ...]:
    """Names of the fields that an event has besides its header's, which are the record's."""
    return tuple(field.name for field in fields(cls)[len(fields(Event)) :])


def _simple(ctype: str, cls: Any) -> tuple[int, type[Event], _Decode]:
    names = _own(cls)

    def decode(head: _Head, record: Any, _words: int) -> Event:
        body = ffi.cast(f"{ctype} *", record)
        made: Event = cls(*head, *(int(getattr(body, name)) for name in names))
        return made

    return ffi.sizeof(ctype), cls, decode


def _ranged(ctype: str, cls: type[Program] | type[Fault]) -> tuple[int, type[Event], _Decode]:
    _, *names = _own(cls)

    def decode(head: _Head, record: Any, _words: int) -> Event:
        body = ffi.cast(f"{ctype} *", record)
        values = (int(getattr(body, name)) for name in names)
        return cls(*head, BlockRange.decode(int(body.range)), *values)

    return ffi.sizeof(ctype), cls, decode


def _execute(head: _Head, record: Any, words: int) -> Event:
    body = ffi.cast("deepum_execute_event *", record)
    count = body.write_ranges + body.read_ranges + body.unknown_ranges
    start = ffi.sizeof("deepum_execute_event") // 8
    if start + count + body.declared_words > words:
        raise ValueError(f"execute event {head[3]}: {count} ranges in a record of {words} words")
    packed = ffi.cast("uint64_t *", record) + start
    ranges = tuple(BlockRange.decode(int(packed[i])) for i in range(count))
    written, read = body.write_ranges, body.write_ranges + body.read_ranges
    return Execute(
        *head,
        int(body.execution_hash),
        int(body.stream),
        ranges[:written],
        ranges[written:read],
        ranges[read:],
        tuple(
            place
            for place in range(min(body.unknown_ranges, 64 * body.declared_words))
            if packed[count + place // 64] >> place % 64 & 1
        ),
    )


def _setting(head: _Head, record: Any, _words: int) -> Event:
    body = ffi.cast("deepum_setting_event *", record)
    return Setting(*head, _SETTINGS.get(head[1], f"setting_{head[1]}"), int(body.value))


# By kind: the least bytes of a record, what is made of it, and how.
_DECODERS: dict[int, tuple[int, type[Event], _Decode]] = {
    lib.DEEPUM_EVENT_DEVICE: _simple("deepum_device_event", Device),
    lib.DEEPUM_EVENT_CAPACITY: _simple("deepum_device_event", Device),
    lib.DEEPUM_EVENT_ALLOCATE: _simple("deepum_allocate_event", Allocate),
    lib.DEEPUM_EVENT_FREE: _simple("deepum_free_event", Free),
    lib.DEEPUM_EVENT_BLOCK_ACTIVE: _simple("deepum_block_event", Block),
    lib.DEEPUM_EVENT_BLOCK_INACTIVE: _simple("deepum_block_event", Block),
    lib.DEEPUM_EVENT_EXECUTE: (ffi.sizeof("deepum_execute_event"), Execute, _execute),
    lib.DEEPUM_EVENT_SYNCHRONISE: _simple("deepum_stream_event", Stream),
    lib.DEEPUM_EVENT_STREAM_DESTROYED: _simple("deepum_stream_event", Stream),
    lib.DEEPUM_EVENT_PROGRAM_PREFETCH: _ranged("deepum_program_event", Program),
    lib.DEEPUM_EVENT_PROGRAM_ADVISE: _ranged("deepum_program_event", Program),
    lib.DEEPUM_EVENT_FAULT: _ranged("deepum_fault_event", Fault),
    lib.DEEPUM_EVENT_PROGRESS: _simple("deepum_progress_event", Progress),
    lib.DEEPUM_EVENT_WAITED: _simple("deepum_waited_event", Waited),
    lib.DEEPUM_EVENT_MOVED: _simple("deepum_moved_event", Moved),
    lib.DEEPUM_EVENT_LOST: _simple("deepum_lost_event", Lost),
    lib.DEEPUM_EVENT_SETTING: (ffi.sizeof("deepum_setting_event"), Setting, _setting),
    lib.DEEPUM_EVENT_USAGE: _simple("deepum_usage_event", Usage),
    lib.DEEPUM_EVENT_FREE_MEMORY: _simple("deepum_free_memory_event", FreeMemory),
}


def events(records: Buffer) -> Iterator[Event]:
    """The event records of a buffer, in order. Raises ValueError where a record's length is
    impossible.
    """
    return events_of(records, Event)


def events_of(records: Buffer, cls: type[_E]) -> Iterator[_E]:
    """Those of that class alone: others are passed over by their lengths, which takes a fraction of
    the time. Raises ValueError as `events` does.
    """
    kinds = {kind for kind, (_, made, _) in _DECODERS.items() if issubclass(made, cls)}
    view = memoryview(records).cast("B")
    base = ffi.from_buffer("uint8_t[]", view)
    at = 0
    while at < view.nbytes:
        header = ffi.cast("deepum_event_header *", base + at)
        kind, words = int(header.kind), int(header.words)
        if view.nbytes - at < 16 or words < 2 or at + words * 8 > view.nbytes:
            raise ValueError(f"event record at byte {at}: impossible length")
        if kind in kinds or (cls is Event and kind not in _DECODERS):
            yield _event(base + at, header, cls)
        at += words * 8


def _event(record: Any, header: Any, cls: type[_E]) -> _E:
    head = (
        _NAMES.get(header.kind, f"kind_{header.kind}"),
        int(header.flags),
        int(header.device),
        int(header.sequence),
    )
    if header.kind not in _DECODERS:
        return cls(*head)
    least, _, decode = _DECODERS[header.kind]
    if header.words * 8 < least:
        raise ValueError(
            f"{head[0]} event {head[3]}: a record of {header.words} words is too short"
        )
    return cast(_E, decode(head, record, int(header.words)))


def commands(records: Buffer) -> Iterator[Command]:
    """The command records of a buffer, in order. Raises ValueError when it is not a whole number of
    them.
    """
    view = memoryview(records).cast("B")
    if view.nbytes % COMMAND_BYTES:
        raise ValueError(f"{view.nbytes} bytes are not a whole number of commands")
    if not view.nbytes:
        return
    base = ffi.cast("deepum_command *", ffi.from_buffer("uint8_t[]", view))
    for i in range(view.nbytes // COMMAND_BYTES):
        c = base[i]
        yield Command(
            c.id,
            c.cause,
            c.after_sequence,
            c.stream_mask,
            c.after_move,
            c.slot,
            c.generation,
            c.first_block,
            c.block_count,
            _COMMANDS.get(c.kind, f"kind_{c.kind}"),
            c.advice,
            c.device,
            c.location,
        )
