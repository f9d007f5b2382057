"""A program's side of a session in plain Python (native/wire): for tests of the daemon without a
shim.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import select
import socket
import struct
from pathlib import Path

from deepum.paths import daemon_files

EVENT_RING = 1 << 22
COMMAND_RING = 1 << 20
CONTROL = 4096
COMMAND_BYTES = 64
_EVENT_RESERVED, _EVENT_CONSUMED, _DECIDED, _COMMAND_WRITTEN, _COMMAND_CONSUMED = (
    64,
    128,
    136,
    192,
    256,
)
_DAEMON_SLEEPS, _MOVER_SLEEPS, _PROGRAM_LEFT, _DAEMON_LEFT, _WANTS_FAULTS = 320, 324, 328, 332, 336
DEVICE, ALLOCATE, EXECUTE, SYNCHRONISE = 1, 2, 6, 7
CARD = 64 << 20
BRINGS = (1, 9)  # kinds of commands: prefetch, populate


def shared_memory(seals: bool = True, magic: bytes = b"DEEPUMRG") -> int:
    """A memfd laid out as the shim does; returns the descriptor."""
    fd = os.memfd_create("deepum-test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, CONTROL + EVENT_RING + COMMAND_RING)
    os.pwrite(fd, struct.pack("<8sIII", magic, 2, EVENT_RING, COMMAND_RING), 0)
    if seals:
        fcntl.fcntl(fd, 1033, 0x0001 | 0x0002 | 0x0004)  # F_ADD_SEALS: SEAL, SHRINK, GROW
    return fd


class RefusedError(Exception):
    """The daemon's line of text."""


class FakeProgram:
    """Connects, says hello, emits events, waits for decisions, reads commands."""

    def __init__(
        self,
        folder: Path,
        settings: dict[str, str] | None = None,
        pid: int = 4242,
        hello: bytes | None = None,
        memory: int | None = None,
    ) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(str(daemon_files(folder).socket))
        self.socket.settimeout(10)  # not before: a full queue would be an error then
        self.memory_fd = memory if memory is not None else shared_memory()
        self.daemon_fd, self.mover_fd = os.eventfd(0), os.eventfd(0)
        text = b"".join(f"{name}={value}\0".encode() for name, value in (settings or {}).items())
        message = (
            hello
            if hello is not None
            else struct.pack("<8sIIII", b"DEEPUMHI", 2, len(text), pid, 0) + text
        )
        socket.send_fds(self.socket, [message], [self.memory_fd, self.daemon_fd, self.mover_fd])
        answer = self.socket.recv(8192)
        if not answer:
            raise RefusedError("closed")
        magic, _, length = struct.unpack_from("<8sII", answer)
        if magic != b"DEEPUMOK":
            raise RefusedError(answer[16 : 16 + length].decode())
        self.memory = mmap.mmap(self.memory_fd, CONTROL + EVENT_RING + COMMAND_RING)
        # Stored whole, unlike what struct.pack_into does.
        self.words = memoryview(self.memory).cast("Q")
        self.reserved = 0
        self.commands_read = 0
        self.launched: dict[int, int] = {}  # sequence -> slot

    def _get(self, offset: int, form: str = "<Q") -> int:
        return (
            self.words[offset // 8]
            if form == "<Q"
            else int(struct.unpack_from(form, self.memory, offset)[0])
        )

    def emit(self, kind: int, body: bytes, flags: int = 0, device: int = 0) -> int:
        """Puts a record into the ring; returns its sequence."""
        words = 2 + len(body) // 8
        place = self.reserved % EVENT_RING
        if place + words * 8 > EVENT_RING:
            pad = (EVENT_RING - place) // 8
            self.reserved += pad * 8
            self.words[_EVENT_RESERVED // 8] = self.reserved
            self.words[(CONTROL + place) // 8] = pad
            place = self.reserved % EVENT_RING
        sequence = self.reserved // 8 + 1
        self.reserved += words * 8
        self.words[_EVENT_RESERVED // 8] = self.reserved
        self.words[(CONTROL + place) // 8 + 1] = sequence
        self.memory[CONTROL + place + 16 : CONTROL + place + words * 8] = body
        self.words[(CONTROL + place) // 8] = words | kind << 16 | flags << 24 | device << 32
        if self._get(_DAEMON_SLEEPS, "<I"):
            os.eventfd_write(self.daemon_fd, 1)
        return sequence

    def device(self, capacity: int = CARD) -> int:
        """A device with so much room."""
        return self.emit(DEVICE, struct.pack("<QQ", capacity, capacity))

    def allocate(self, slot: int, size: int) -> int:
        """An allocation; its name is its slot."""
        return self.emit(ALLOCATE, struct.pack("<IIQQQ", slot, 1, slot + 1, size, 0))

    def execute(self, execution_hash: int, slot: int, blocks: int) -> int:
        """A launch that touches the first blocks of a slot."""
        return self.emit(
            EXECUTE,
            struct.pack("<QIHHHHI", execution_hash, 0, 0, 0, 1, 0, 0)
            + struct.pack("<Q", slot << 44 | blocks),
        )

    def wait_decided(self, sequence: int) -> None:
        """As a launch in lock-step does. Raises TimeoutError after 20 s without a decision."""
        struct.pack_into("<I", self.memory, _MOVER_SLEEPS, 1)
        while self._get(_DECIDED) < sequence:
            if self._get(_DECIDED) >= sequence:
                break
            if not select.select([self.mover_fd], [], [], 20)[0]:  # until the daemon writes
                raise TimeoutError(f"no decision about event {sequence}")
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self.mover_fd)

    def commands(self) -> list[tuple[int, ...]]:
        """Commands not yet read: (id, cause, after_sequence, stream_mask, after_move, slot,
        generation, first, count, kind, ...).
        """
        found = []
        while self.commands_read < self._get(_COMMAND_WRITTEN):
            place = CONTROL + EVENT_RING + self.commands_read % COMMAND_RING
            found.append(struct.unpack_from("<QQQQQIIIIBBHi", self.memory, place))
            self.commands_read += COMMAND_BYTES
            self.words[_COMMAND_CONSUMED // 8] = self.commands_read
        return found

    @property
    def decided(self) -> int:
        """Sequence of the latest event that the daemon says it has decided about."""
        return self._get(_DECIDED)

    @property
    def daemon_left(self) -> bool:
        """The daemon gave this session up."""
        return bool(self._get(_DAEMON_LEFT, "<I"))

    @property
    def wants_faults(self) -> bool:
        """The daemon asks for observed faults."""
        return bool(self._get(_WANTS_FAULTS, "<I"))

    def train(
        self, rounds: int, arrays: int = 6, size: int = 16 << 20, set_up: bool = True
    ) -> list[list[tuple[int, ...]]]:
        """Sweeps over arrays that exceed the card, in lock-step; returns the commands of each
        round.
        """
        if set_up:
            self.device()
            for slot in range(arrays):
                self.allocate(slot, size)
        answered = []
        for _ in range(rounds):
            of_round = []
            for slot in range(arrays):
                sequence = self.execute(1000 + slot, slot, size >> 21)
                self.launched[sequence] = slot
                self.wait_decided(sequence)
                of_round += self.commands()
            answered.append(of_round)
        return answered

    def ahead(self, commands: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Of the commands, those that bring something else than the launch at hand needs."""
        return [
            command
            for command in commands
            if command[9] in BRINGS and command[5] != self.launched.get(command[1])
        ]

    def close(self) -> None:
        """Leaves; a killed program does the same by ending."""
        self.socket.close()
        for fd in (self.memory_fd, self.daemon_fd, self.mover_fd):
            os.close(fd)
