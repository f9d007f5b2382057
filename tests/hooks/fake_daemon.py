"""A daemon that takes every event down and decides nothing: what the shim says, seen from the other
end of the wire.
"""

from __future__ import annotations

import array
import contextlib
import mmap
import os
import socket
import struct
import threading
from dataclasses import dataclass, field
from pathlib import Path

from deepum.paths import SHIM, daemon_files

CONTROL_BYTES = 4096
# Offsets in deepum_ring_control (native/wire/ring.h).
EVENT_RING_BYTES = 12
EVENTS_LOST = 64 + 8
HANDLES_REFUSED = 64 + 16
EVENT_CONSUMED = 128
DECIDED_SEQUENCE = 136
DAEMON_SLEEPS = 320
MOVER_SLEEPS = 324
WANTS_READS = 348

KINDS = {
    1: "device",
    2: "allocate",
    3: "free",
    4: "block_active",
    5: "block_inactive",
    6: "execute",
    7: "synchronise",
    8: "stream_destroyed",
    9: "capacity",
    10: "program_prefetch",
    11: "program_advise",
    12: "fault",
    13: "moved",
    14: "lost",
    15: "usage",
}


@dataclass
class Event:
    kind: str
    flags: int
    device: int
    sequence: int
    body: bytes = field(repr=False)
    raw: bytes = field(repr=False)

    def words(self) -> tuple[int, ...]:
        return struct.unpack(f"<{len(self.body) // 8}Q", self.body)


@dataclass
class Execute:
    hash: int
    stream: int
    device: int
    flags: int
    written: list[tuple[int, int, int]]
    read: list[tuple[int, int, int]]
    unknown: list[tuple[int, int, int]]
    declared: list[int]  # places in `unknown`


def block_range(word: int) -> tuple[int, int, int]:
    """(slot, first UM block, number of UM blocks)"""
    return word >> 44, word >> 20 & 0xFFFFFF, word & 0xFFFFF


def execute(event: Event) -> Execute:
    execution_hash, stream, *counts = struct.unpack_from("<QIHHHH", event.body)
    writes, reads, unknowns, marks = counts
    words = event.words()[3:]
    assert len(words) == sum(counts)
    ranges = [block_range(word) for word in words[: writes + reads + unknowns]]
    bits = sum(word << 64 * i for i, word in enumerate(words[len(words) - marks :]))
    return Execute(
        execution_hash,
        stream,
        event.device,
        event.flags,
        ranges[:writes],
        ranges[writes : writes + reads],
        ranges[writes + reads :],
        [place for place in range(bits.bit_length()) if bits >> place & 1],
    )


class Session:
    def __init__(
        self,
        connection: socket.socket,
        settings: dict[str, str],
        memory: mmap.mmap,
        wake: int,
        mover: int,
    ) -> None:
        self.connection = connection
        self.settings = settings
        self.events: list[Event] = []
        self._memory = memory
        # Read and stored whole, unlike what `struct` does: it clears the place first.
        self._words = memoryview(memory).cast("Q")
        self._mover = mover
        self._wake = wake
        self._ring_bytes: int = struct.unpack_from("<I", memory, EVENT_RING_BYTES)[0]

    def lost(self) -> int:
        return self._words[EVENTS_LOST // 8]

    def refused(self) -> int:
        return self._words[HANDLES_REFUSED // 8]

    def drain(self) -> bool:
        memory = self._memory
        position = self._words[EVENT_CONSUMED // 8]
        took = False
        sequence = 0
        while True:
            at = CONTROL_BYTES + position % self._ring_bytes
            header = self._words[at // 8]
            words, kind, flags, device = (
                header & 0xFFFF,
                header >> 16 & 0xFF,
                header >> 24 & 0xFF,
                header >> 32,
            )
            if words == 0:
                break
            raw = bytes(memory[at : at + 8 * words])
            memory[at : at + 8 * words] = bytes(8 * words)
            position += 8 * words
            took = True
            if kind == 0:
                continue
            sequence = struct.unpack_from("<Q", raw, 8)[0]
            self.events.append(Event(KINDS[kind], flags, device, sequence, raw[16:], raw))
        if took:
            self._words[EVENT_CONSUMED // 8] = position
            if sequence:
                self._words[DECIDED_SEQUENCE // 8] = sequence
            if struct.unpack_from("<I", memory, MOVER_SLEEPS)[0]:
                os.write(self._mover, struct.pack("<Q", 1))
        return took

    def serve(self) -> None:
        self.connection.setblocking(False)
        while True:
            if self.drain():
                continue
            try:
                if self.connection.recv(1) == b"":
                    break
            except BlockingIOError:
                pass
            except OSError:
                break
            threading.Event().wait(0.0005)
        self.drain()


class FakeDaemon:
    """Serves the socket in a runtime directory of its own; `sessions` fill as programs connect."""

    def __init__(self, directory: Path, library: Path = SHIM) -> None:
        """`library`: the shim whose daemon this is."""
        self.directory = directory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        path = daemon_files(directory, library).socket
        self._listener.bind(str(path))
        path.chmod(0o600)
        self._listener.listen(8)
        self.sessions: list[Session] = []
        self.wants_reads = False  # of programs that come from now on
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            session = self._hello(connection)
            if session:
                self.sessions.append(session)
                thread = threading.Thread(target=session.serve, daemon=True)
                thread.start()
                self._threads.append(thread)
                # Last: a program that has gone is then known to events().
                connection.send(struct.pack("<8sII", b"DEEPUMOK", 2, 0))

    def _hello(self, connection: socket.socket) -> Session | None:
        descriptors = array.array("i")
        message, ancillary, _, _ = connection.recvmsg(
            128 * 1024, socket.CMSG_SPACE(3 * descriptors.itemsize)
        )
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
        if len(descriptors) != 3:
            connection.close()
            return None
        magic, version, settings_bytes, _, _ = struct.unpack_from("<8sIIII", message)
        assert magic == b"DEEPUMHI" and version == 2
        text = message[24 : 24 + settings_bytes].decode()
        settings = dict(pair.split("=", 1) for pair in text.split("\0") if "=" in pair)
        memory = mmap.mmap(descriptors[0], 0)
        struct.pack_into("<I", memory, WANTS_READS, self.wants_reads)
        return Session(connection, settings, memory, descriptors[1], descriptors[2])

    def events(self) -> list[Event]:
        """Everything so far, after all programs have gone."""
        for thread in self._threads:
            thread.join(20)
        return [event for session in self.sessions for event in session.events]

    def close(self) -> None:
        with contextlib.suppress(OSError):  # closed before
            # Wakes the thread that accepts: until then the socket lives on.
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def __enter__(self) -> FakeDaemon:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
