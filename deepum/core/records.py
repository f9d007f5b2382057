"""Event and command records as Python objects, for logs and tests; the definition is
native/wire/records.h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

from deepum._core import ffi, lib

Buffer = bytes | bytearray | memoryview
# Flags of FAULT events, enum deepum_fault_access.
FAULT_READ: int = lib.DEEPUM_FAULT_READ
FAULT_WRITE: int = lib.DEEPUM_FAULT_WRITE
FAULT_ATOMIC: int = lib.DEEPUM_FAULT_ATOMIC
COMMAND_BYTES: int = ffi.sizeof("deepum_command")
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


@dataclass(frozen=True, slots=True)
class BlockRange:
    """A run of UM blocks inside one slot."""

    slot: int
    first: int
    count: int

    @classmethod
    def decode(cls, word: int) -> BlockRange:
        """From the packed form, `deepum_block_range`."""
        slot_shift, first_shift = lib.DEEPUM_RANGE_SLOT_SHIFT, lib.DEEPUM_RANGE_FIRST_SHIFT
        return cls(
            word >> slot_shift,
            word >> first_shift & ((1 << lib.DEEPUM_RANGE_FIRST_BITS) - 1),
            word & ((1 << lib.DEEPUM_RANGE_COUNT_BITS) - 1),
        )

    def encode(self) -> int:
        """To the packed form."""
        return (
            self.slot << int(lib.DEEPUM_RANGE_SLOT_SHIFT)
            | self.first << int(lib.DEEPUM_RANGE_FIRST_SHIFT)
            | int(self.count)
        )


@dataclass(frozen=True)
class Event:
    """Any event: what its header says. Kinds without a class of their own stay this."""

    kind: str
    flags: int
    device: int
    sequence: int


@dataclass(frozen=True)
class Device(Event):
    """`device` and `capacity` events; bytes."""

    total_bytes: int
    capacity_bytes: int


@dataclass(frozen=True)
class Usage(Event):
    """More of a device is in use than ever before, under a budget; bytes."""

    used_bytes: int
    budget_bytes: int


@dataclass(frozen=True)
class FreeMemory(Event):
    """What the driver says is free of a device, bytes, and how far the GPU was then, sequences."""

    free_bytes: int
    reserve_bytes: int
    completed: int
    begun: int


@dataclass(frozen=True)
class Allocate(Event):
    """A new allocation."""

    slot: int
    generation: int
    name: int
    bytes: int
    first_offset: int


@dataclass(frozen=True)
class Free(Event):
    """The end of an allocation."""

    slot: int
    generation: int


@dataclass(frozen=True)
class Block(Event):
    """`block_active` and `block_inactive`: PyTorch's block accounting; bytes."""

    slot: int
    generation: int
    offset: int
    bytes: int
    allocated_bytes: int
    reserved_bytes: int


@dataclass(frozen=True)
class Execute(Event):
    """A launch and the UM blocks it may touch. declared: places in `unknown` that are only read, as
    the program declares.
    """

    execution_hash: int
    stream: int
    written: tuple[BlockRange, ...]
    read: tuple[BlockRange, ...]
    unknown: tuple[BlockRange, ...]
    declared: tuple[int, ...] = ()

    @property
    def ranges(self) -> tuple[BlockRange, ...]:
        """The access set, in the record's order."""
        return self.written + self.read + self.unknown


@dataclass(frozen=True)
class Stream(Event):
    """`synchronise` and `stream_destroyed`."""

    stream: int


@dataclass(frozen=True)
class Program(Event):
    """`program_prefetch` and `program_advise`: the program's own; location -1 is the CPU."""

    range: BlockRange
    location: int
    advice: int


@dataclass(frozen=True)
class Fault(Event):
    """Observed GPU faults; the accesses' kinds, `FAULT_READ` and so on, are in `flags`."""

    range: BlockRange
    faults: int


@dataclass(frozen=True)
class Progress(Event):
    """How far a stream was at a look for faults: sequences, and when `completed` was reached, in
    microseconds of the GPU (0: unknown).
    """

    stream: int
    completed: int
    begun: int
    completed_at: int


@dataclass(frozen=True)
class Waited(Event):
    """How long a stream stood still for moves before its launches up to the sequence `completed`,
    in microseconds of the GPU, of all that were timed so far.
    """

    stream: int
    completed: int
    waited: int


@dataclass(frozen=True)
class Moved(Event):
    """What became of a command."""

    command: int
    status: int
    error: int


@dataclass(frozen=True)
class Lost(Event):
    """Events were dropped before this one."""

    events: int


@dataclass(frozen=True)
class Setting(Event):
    """A setting of the session changed: `budget` in bytes, 0 for that which the device told;
    `prefetch_degree` in launches; `policy`, a number of `deepum_policy`.
    """

    setting: str
    value: int


@dataclass(frozen=True)
class Command:
    """A decision; see `deepum_command`."""

    id: int
    cause: int
    after_sequence: int
    stream_mask: int
    after_move: int
    slot: int
    generation: int
    first_block: int
    block_count: int
    kind: str
    advice: int
    device: int
    location: int


_Head = tuple[str, int, int, int]
_Decode = Callable[[_Head, Any, int], Event]


def _own(cls: type[Event]) -> tuple[str, ...]:
    """Names of the fields that an event has besides its header's, which are the record's."""
    return tuple(field.name for field in fields(cls)[len(fields(Event)) :])


def _simple(ctype: str, cls: Any) -> tuple[int, _Decode]:
    names = _own(cls)

    def decode(head: _Head, record: Any, _words: int) -> Event:
        body = ffi.cast(f"{ctype} *", record)
        made: Event = cls(*head, *(int(getattr(body, name)) for name in names))
        return made

    return ffi.sizeof(ctype), decode


def _ranged(ctype: str, cls: type[Program] | type[Fault]) -> tuple[int, _Decode]:
    _, *names = _own(cls)

    def decode(head: _Head, record: Any, _words: int) -> Event:
        body = ffi.cast(f"{ctype} *", record)
        values = (int(getattr(body, name)) for name in names)
        return cls(*head, BlockRange.decode(int(body.range)), *values)

    return ffi.sizeof(ctype), decode


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


_DECODERS: dict[int, tuple[int, _Decode]] = {
    lib.DEEPUM_EVENT_DEVICE: _simple("deepum_device_event", Device),
    lib.DEEPUM_EVENT_CAPACITY: _simple("deepum_device_event", Device),
    lib.DEEPUM_EVENT_ALLOCATE: _simple("deepum_allocate_event", Allocate),
    lib.DEEPUM_EVENT_FREE: _simple("deepum_free_event", Free),
    lib.DEEPUM_EVENT_BLOCK_ACTIVE: _simple("deepum_block_event", Block),
    lib.DEEPUM_EVENT_BLOCK_INACTIVE: _simple("deepum_block_event", Block),
    lib.DEEPUM_EVENT_EXECUTE: (ffi.sizeof("deepum_execute_event"), _execute),
    lib.DEEPUM_EVENT_SYNCHRONISE: _simple("deepum_stream_event", Stream),
    lib.DEEPUM_EVENT_STREAM_DESTROYED: _simple("deepum_stream_event", Stream),
    lib.DEEPUM_EVENT_PROGRAM_PREFETCH: _ranged("deepum_program_event", Program),
    lib.DEEPUM_EVENT_PROGRAM_ADVISE: _ranged("deepum_program_event", Program),
    lib.DEEPUM_EVENT_FAULT: _ranged("deepum_fault_event", Fault),
    lib.DEEPUM_EVENT_PROGRESS: _simple("deepum_progress_event", Progress),
    lib.DEEPUM_EVENT_WAITED: _simple("deepum_waited_event", Waited),
    lib.DEEPUM_EVENT_MOVED: _simple("deepum_moved_event", Moved),
    lib.DEEPUM_EVENT_LOST: _simple("deepum_lost_event", Lost),
    lib.DEEPUM_EVENT_SETTING: (ffi.sizeof("deepum_setting_event"), _setting),
    lib.DEEPUM_EVENT_USAGE: _simple("deepum_usage_event", Usage),
    lib.DEEPUM_EVENT_FREE_MEMORY: _simple("deepum_free_memory_event", FreeMemory),
}


def events(records: Buffer) -> Iterator[Event]:
    """The event records of a buffer, in order. Raises ValueError where a record's length is
    impossible.
    """
    view = memoryview(records).cast("B")
    base = ffi.from_buffer("uint8_t[]", view)
    at = 0
    while at < view.nbytes:
        header = ffi.cast("deepum_event_header *", base + at)
        if view.nbytes - at < 16 or header.words < 2 or at + header.words * 8 > view.nbytes:
            raise ValueError(f"event record at byte {at}: impossible length")
        head = (
            _NAMES.get(header.kind, f"kind_{header.kind}"),
            int(header.flags),
            int(header.device),
            int(header.sequence),
        )
        least, decode = _DECODERS.get(header.kind, (0, None))
        if header.words * 8 < least:
            raise ValueError(
                f"{head[0]} event {head[3]}: a record of {header.words} words is too short"
            )
        yield decode(head, base + at, int(header.words)) if decode is not None else Event(*head)
        at += header.words * 8


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
