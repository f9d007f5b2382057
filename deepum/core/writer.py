"""Makes event records, for tests, benchmarks and made-up traces; the definition is
native/wire/records.h.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from deepum._core import lib
from deepum.core.records import BlockRange

UM_BLOCK_BYTES: int = 1 << lib.DEEPUM_UM_BLOCK_SHIFT


class EventWriter:
    """Collects event records. Sequences rise by one from record to record; `take` hands the records
    out.
    """

    def __init__(self, sequence: int = 0) -> None:
        self.sequence = sequence
        self._records = bytearray()

    def take(self) -> bytes:
        """The records written since the last call."""
        records = bytes(self._records)
        self._records.clear()
        return records

    def record(self, kind: int, body: bytes, device: int = 0, flags: int = 0) -> int:
        """Any record; the body is a multiple of 8 bytes. Returns the sequence it got, as all the
        others do.
        """
        self.sequence += 1
        self._records += (
            struct.pack("<HBBIQ", 2 + len(body) // 8, kind, flags, device, self.sequence) + body
        )
        return self.sequence

    def device(self, capacity_blocks: int, device: int = 0) -> int:
        """A device comes into use, with room for that many UM blocks."""
        size = capacity_blocks * UM_BLOCK_BYTES
        return self.record(lib.DEEPUM_EVENT_DEVICE, struct.pack("<QQ", size, size), device)

    def capacity(self, capacity_blocks: int, device: int = 0) -> int:
        """Its room changes."""
        size = capacity_blocks * UM_BLOCK_BYTES
        return self.record(lib.DEEPUM_EVENT_CAPACITY, struct.pack("<QQ", size, size), device)

    def setting(self, setting: int, value: int, device: int = 0) -> int:
        """A setting of the session changes: `lib.DEEPUM_SETTING_BUDGET` (bytes) and so on."""
        return self.record(
            lib.DEEPUM_EVENT_SETTING, struct.pack("<Q", value), device, flags=setting
        )

    def allocate(
        self,
        slot: int,
        blocks: int,
        name: int | None = None,
        generation: int = 1,
        device: int = 0,
        flags: int = 0,
        first_offset: int = 0,
    ) -> int:
        """An allocation that lies in so many UM blocks, to the end of the last and from byte
        `first_offset` of the first.

        Its name is the slot's number unless one is given.
        """
        size = blocks * UM_BLOCK_BYTES - first_offset
        body = struct.pack(
            "<IIQQQ", slot, generation, slot + 1 if name is None else name, size, first_offset
        )
        return self.record(lib.DEEPUM_EVENT_ALLOCATE, body, device, flags)

    def free(self, slot: int, generation: int = 1) -> int:
        """The end of an allocation."""
        return self.record(lib.DEEPUM_EVENT_FREE, struct.pack("<II", slot, generation))

    def block(
        self,
        active: bool,
        slot: int,
        offset: int,
        size: int,
        allocated: int,
        reserved: int = 0,
        generation: int = 1,
    ) -> int:
        """PyTorch hands a block out or takes it back; bytes."""
        kind = lib.DEEPUM_EVENT_BLOCK_ACTIVE if active else lib.DEEPUM_EVENT_BLOCK_INACTIVE
        return self.record(
            kind, struct.pack("<IIQQQQ", slot, generation, offset, size, allocated, reserved)
        )

    def execute(
        self,
        execution_hash: int,
        unknown: Iterable[BlockRange] = (),
        stream: int = 0,
        written: Sequence[BlockRange] = (),
        read: Sequence[BlockRange] = (),
        device: int = 0,
        flags: int = 0,
        declared: Iterable[int] = (),
    ) -> int:
        """A launch with its access set. declared: places in `unknown` that are only read."""
        rest = list(unknown)
        bits = sum(1 << place for place in set(declared))
        words = (bits.bit_length() + 63) // 64
        body = struct.pack(
            "<QIHHHHI", execution_hash, stream, len(written), len(read), len(rest), words, 0
        )
        body += b"".join(r.encode().to_bytes(8, "little") for r in (*written, *read, *rest))
        body += bits.to_bytes(8 * words, "little")
        return self.record(lib.DEEPUM_EVENT_EXECUTE, body, device, flags)

    def synchronise(self, stream: int = lib.DEEPUM_ALL_STREAMS) -> int:
        """The program is about to wait for a stream, or for all."""
        return self.record(lib.DEEPUM_EVENT_SYNCHRONISE, struct.pack("<II", stream, 0))

    def fault(
        self,
        where: BlockRange,
        faults: int = 1,
        device: int = 0,
        access: int = lib.DEEPUM_FAULT_READ,
    ) -> int:
        """Faults were observed; access: of the accesses that faulted, `enum
        deepum_fault_access`.
        """
        return self.record(
            lib.DEEPUM_EVENT_FAULT, struct.pack("<QQ", where.encode(), faults), device, access
        )

    def progress(self, stream: int, completed: int, begun: int, completed_at: int = 0) -> int:
        """How far a stream was at the look whose faults came before; sequences, and microseconds of
        the GPU's time (0: not known).
        """
        return self.record(
            lib.DEEPUM_EVENT_PROGRESS,
            struct.pack("<IIQQQ", stream, 0, completed, begun, completed_at),
        )

    def waited(self, stream: int, completed: int, waited: int) -> int:
        """How long a stream has stood still before its launches up to that sequence, in
        microseconds.
        """
        return self.record(
            lib.DEEPUM_EVENT_WAITED, struct.pack("<IIQQ", stream, 0, completed, waited)
        )

    def moved(self, command: int, status: int, error: int = 0) -> int:
        """What became of a command."""
        return self.record(lib.DEEPUM_EVENT_MOVED, struct.pack("<QII", command, status, error))

    def program_prefetch(self, where: BlockRange, location: int) -> int:
        """The program's own prefetch; location -1 is the CPU."""
        return self.record(
            lib.DEEPUM_EVENT_PROGRAM_PREFETCH, struct.pack("<Qii", where.encode(), location, 0)
        )

    def program_advise(self, where: BlockRange, location: int, advice: int) -> int:
        """The program's own advice (CUmem_advise)."""
        return self.record(
            lib.DEEPUM_EVENT_PROGRAM_ADVISE, struct.pack("<Qii", where.encode(), location, advice)
        )

    def usage(self, used_bytes: int, budget_bytes: int, device: int = 0) -> int:
        """More than its budget is in use of a device."""
        return self.record(
            lib.DEEPUM_EVENT_USAGE, struct.pack("<QQ", used_bytes, budget_bytes), device
        )

    def free_memory(
        self, free_blocks: int, completed: int, begun: int, reserve_blocks: int = 0, device: int = 0
    ) -> int:
        """So many UM blocks are free of a device, of which some are not for managed memory;
        sequences of how far the GPU was.
        """
        body = struct.pack(
            "<QQQQ", free_blocks * UM_BLOCK_BYTES, reserve_blocks * UM_BLOCK_BYTES, completed, begun
        )
        return self.record(lib.DEEPUM_EVENT_FREE_MEMORY, body, device)

    def lost(self, events: int) -> int:
        """Events were dropped before this one."""
        return self.record(lib.DEEPUM_EVENT_LOST, struct.pack("<Q", events))
