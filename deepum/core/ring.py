"""The daemon's end of a session's shared memory (native/wire/ring_reader.h)."""

from __future__ import annotations

import fcntl
import mmap
import os
from dataclasses import dataclass

from deepum._core import ffi, lib
from deepum.core.engine import Core
from deepum.core.records import COMMAND_BYTES, Buffer

_FAULTS: dict[int, str] = {
    lib.DEEPUM_RING_BAD_LENGTH: "a record's length is impossible",
    lib.DEEPUM_RING_BAD_RESERVED: "the producers' position is impossible",
    lib.DEEPUM_RING_BAD_CONSUMED: "the mover's position is impossible",
}
_F_SEAL_SHRINK = 2  # linux/fcntl.h; Python's fcntl names it only from 3.9 with a recent glibc


class RingError(Exception):
    """The shared memory is not a ring of this version, can shrink under us, or holds nonsense."""


@dataclass(frozen=True)
class Turn:
    """What one turn of the loop did."""

    events: memoryview  # the records taken; valid until the next turn of this ring
    commands: int  # written to the command ring
    wake_mover: bool  # the mover's eventfd must be written
    blocked: bool  # the command ring is full: come again although no events arrive


class Ring:
    """Takes events out of a program's shared memory and puts commands into it. One thread at a
    time; close when done.
    """

    def __init__(self, memory: mmap.mmap, batch_bytes: int = 1 << 18) -> None:
        """`memory` must not be able to shrink. Raises RingError when it is not a ring of this
        version.
        """
        self._memory = memory
        self._base = ffi.from_buffer("uint8_t[]", memory, require_writable=True)
        self._reader = ffi.new("deepum_ring_reader *")
        if lib.deepum_ring_open(self._reader, self._base, len(memory)) != 0:
            ffi.release(self._base)
            raise RingError("the shared memory is not a ring of this version")
        self._bytes = bytearray(max(batch_bytes, int(lib.DEEPUM_MAX_EVENT_WORDS) * 8))
        self._batch = ffi.from_buffer("uint8_t[]", self._bytes)
        self._turn = ffi.new("deepum_turn *")

    @classmethod
    def from_fd(cls, fd: int) -> Ring:
        """Maps a memfd whose size is sealed; the descriptor stays the caller's. Raises RingError,
        OSError.
        """
        if not fcntl.fcntl(fd, fcntl.F_GET_SEALS) & _F_SEAL_SHRINK:
            raise RingError("the shared memory is not sealed against shrinking")
        size = os.fstat(fd).st_size
        if size < int(lib.DEEPUM_CONTROL_BYTES):
            raise RingError("the shared memory is too small")
        return cls(mmap.mmap(fd, size))

    @property
    def broken(self) -> str | None:
        """Why the ring can no longer be used, None while it can."""
        return _FAULTS.get(self._reader.broken)

    @property
    def program_left(self) -> bool:
        """The program announced an orderly end."""
        return bool(self._reader.control.program_left)

    @property
    def handles_refused(self) -> int:
        """Requests to share managed memory with other processes or devices that the driver refused,
        as the program counts.
        """
        return int(self._reader.control.handles_refused)

    @property
    def decided(self) -> int:
        """Sequence of the latest event that a turn's core has."""
        return int(self._turn.decided)

    @property
    def commands_untaken(self) -> int:
        """Commands that the program's mover has not seen, as far as it can be believed."""
        waiting = self._reader.command_written - self._reader.control.command_consumed
        return int(max(0, waiting)) // COMMAND_BYTES

    @property
    def moves_waiting(self) -> int:
        """Commands that it holds back until their turn comes, as it says itself."""
        return int(self._reader.control.moves_waiting)

    def more_commands(self) -> None:
        """The core has decided outside a turn: the next one writes its commands before it takes
        events.
        """
        self._turn.blocked = 1

    @property
    def allocations_refused(self) -> int:
        """Allocations that GPU and host memory together had no room for, as the program counts."""
        return int(self._reader.control.allocations_refused)

    @property
    def allocatable_bytes(self) -> int:
        """Bytes that the program can allocate on the devices that it has used so far, with what may
        spill to the host; 0 before its first allocation.
        """
        return int(self._reader.control.allocatable_bytes)

    def program_ended(self) -> None:
        """Nobody reads commands any more: from now on they are dropped, so that the last events
        still come through.
        """
        self._reader.unheard = 1

    def leave(self) -> None:
        """Tells the program that the daemon gave this session up."""
        self._reader.control.daemon_left = 1

    def tell_wants(self, core: Core) -> None:
        """Tells the program whether observed faults, free memory, times of launches and what they
        only read are of use to the core now; each turn does it too.
        """
        lib.deepum_ring_want_faults(self._reader, lib.deepum_core_wants_faults(core.handle))
        lib.deepum_ring_want_free_memory(
            self._reader, lib.deepum_core_wants_free_memory(core.handle)
        )
        lib.deepum_ring_want_times(self._reader, lib.deepum_core_wants_times(core.handle))
        lib.deepum_ring_want_reads(self._reader, lib.deepum_core_wants_reads(core.handle))

    def turn(self, core: Core) -> Turn:
        """Events through the core into commands, then `decided_sequence`; all of it without the
        GIL. Nothing to do is an empty turn.
        """
        lib.deepum_take_turn(self._reader, core.handle, self._batch, len(self._bytes), self._turn)
        taken = self._turn
        return Turn(
            memoryview(self._bytes)[: taken.event_bytes],
            taken.commands,
            bool(taken.wake_mover),
            bool(taken.blocked),
        )

    def wait(self, event_fd: int, socket: int = -1, spin: int = 0, timeout_ms: int = -1) -> int:
        """Sleeps until events come (1), the socket speaks (2) or time is up (0); looks `spin` times
        first. Without the GIL.
        """
        return int(lib.deepum_ring_wait(self._reader, event_fd, socket, spin, timeout_ms))

    def take(self) -> bytes:
        """Whole event records that are ready; b"" when there are none."""
        count = int(lib.deepum_ring_take(self._reader, self._batch, len(self._bytes)))
        return bytes(self._bytes[:count])

    def write(self, command_bytes: Buffer) -> int:
        """Writes as many `deepum_command` records as there is room for; returns how many."""
        view = memoryview(command_bytes).cast("B")
        if not view.nbytes:
            return 0
        source = ffi.cast("deepum_command *", ffi.from_buffer("uint8_t[]", view))
        return int(lib.deepum_ring_write(self._reader, source, view.nbytes // COMMAND_BYTES))

    def publish_decided(self, sequence: int) -> bool:
        """Publishes `decided_sequence`, from which a later `turn` goes on; True if the mover's
        eventfd must be written.
        """
        self._turn.decided = max(self._turn.decided, sequence)
        self._turn.published = sequence
        return bool(lib.deepum_ring_publish_decided(self._reader, sequence))

    def close(self) -> None:
        """Unmaps the memory; the ring is of no use afterwards. Safe to call twice."""
        if self._memory.closed:
            return
        self._reader.control = ffi.NULL
        ffi.release(self._base)
        self._memory.close()
