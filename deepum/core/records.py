"""Event and command records as Python objects, for logs and tests; the definition is
native/wire/records.h. deepum.core.decoding reads them.
"""

from __future__ import annotations

from dataclasses import dataclass

from deepum._core import ffi, lib

Buffer = bytes | bytearray | memoryview
# Flags of FAULT events, enum deepum_fault_access.
FAULT_READ: int = lib.DEEPUM_FAULT_READ
FAULT_WRITE: int = lib.DEEPUM_FAULT_WRITE
FAULT_ATOMIC: int = lib.DEEPUM_FAULT_ATOMIC
COMMAND_BYTES: int = ffi.sizeof("deepum_command")


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
