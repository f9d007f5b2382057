"""The daemon's side of the wire in plain Python: takes events, decides what the test says, writes
commands.

A reference for native/wire/ring.h: one thread a session; sleeps on the program's eventfd; publishes
commands before the decision.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from mmap import mmap
from pathlib import Path

from deepum.paths import SHIM, daemon_files

CONTROL_BYTES = 4096
EVENT_RING_BYTES = 1 << 22
COMMAND_RING_BYTES = 1 << 20
# Offsets in deepum_ring_control.
EVENT_RESERVED = 64
EVENTS_LOST = 72
EVENT_CONSUMED = 128
DECIDED_SEQUENCE = 136
COMMAND_WRITTEN = 192
COMMAND_CONSUMED = 256
DAEMON_SLEEPS = 320
MOVER_SLEEPS = 324
PROGRAM_LEFT = 328
DAEMON_LEFT = 332
WANTS_FREE_MEMORY = 340

(
    PAD,
    DEVICE,
    ALLOCATE,
    FREE,
    BLOCK_ACTIVE,
    BLOCK_INACTIVE,
    EXECUTE,
    SYNCHRONISE,
    STREAM_DESTROYED,
) = range(9)
MOVED, LOST = 13, 14
FREE_MEMORY = 17
PREFETCH, EVICT, DISCARD, ADVISE, HOLD, COPY_OUT, DROP, COLLAPSE, POPULATE = (
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
)
STATUS = {0: "issued", 1: "stale", 2: "cancelled", 3: "failed", 4: "refused"}


@dataclass(frozen=True)
class Event:
    kind: int
    flags: int
    device: int
    sequence: int
    body: bytes = field(repr=False)

    @property
    def words(self) -> tuple[int, ...]:
        return struct.unpack(f"<{len(self.body) // 8}Q", self.body)

    @property
    def moved(self) -> tuple[int, str, int]:
        """(command, what became of it, CUresult)"""
        command, status, error = struct.unpack("<QII", self.body)
        return command, STATUS[status], error


@dataclass
class Command:
    kind: int
    slot: int = 0
    first: int = 0
    count: int = 1
    generation: int = 1
    after: int = 0  # sequence
    streams: int = 1  # mask
    after_move: int = 0
    device: int = 0
    advice: int = 0
    location: int = 0
    id: int = 0  # 0: the next one
    cause: int = 0

    def pack(self) -> bytes:
        return struct.pack(
            "<5Q4IBBHi",
            self.id,
            self.cause,
            self.after,
            self.streams,
            self.after_move,
            self.slot,
            self.generation,
            self.first,
            self.count,
            self.kind,
            self.advice,
            self.device,
            self.location,
        )


Decide = Callable[[Event], list[Command]]


class Session:
    """One program. `decide` answers every event with commands; `delay` seconds go by before each
    decision.
    """

    def __init__(
        self,
        connection: socket.socket,
        message: bytes,
        descriptors: list[int],
        decide: Decide,
        delay: float,
    ) -> None:
        magic, self.version, settings_bytes, self.pid, _ = struct.unpack_from("<8sIIII", message)
        assert magic == b"DEEPUMHI"
        text = message[24 : 24 + settings_bytes].decode()
        self.settings = dict(pair.split("=", 1) for pair in text.split("\0") if pair)
        self.connection = connection
        self.memory = mmap(descriptors[0], 0)
        # Read and stored whole, unlike what `struct` does: it clears the place first.
        self._views = {form: memoryview(self.memory).cast(form) for form in ("I", "Q")}
        self.seals = fcntl.fcntl(descriptors[0], fcntl.F_GET_SEALS)
        os.close(descriptors[0])
        self.daemon_fd, self.mover_fd = descriptors[1:]
        self.events: list[Event] = []
        self.problems: list[str] = []
        self._decide, self._delay = decide, delay
        self._consumed = self._written = self._last_id = self._last_sequence = 0
        self.paused = threading.Event()  # set: takes no events

    def load(self, offset: int, form: str = "Q") -> int:
        view = self._views[form]
        return int(view[offset // view.itemsize])

    def store(self, offset: int, value: int, form: str = "Q") -> None:
        view = self._views[form]
        view[offset // view.itemsize] = value

    def take(self) -> list[Event]:
        """Whole records, in order; their place is given back."""
        taken: list[Event] = []
        while len(taken) < 1000:
            at = CONTROL_BYTES + self._consumed % EVENT_RING_BYTES
            word = self.load(at)
            words, kind = word & 0xFFFF, word >> 16 & 0xFF
            if words == 0:
                break
            if kind != PAD:
                raw = bytes(self.memory[at : at + 8 * words])
                sequence = struct.unpack_from("<Q", raw, 8)[0]
                if sequence != self._consumed // 8 + 1 or sequence <= self._last_sequence:
                    self.problems.append(
                        f"sequence {sequence} at {self._consumed}, after {self._last_sequence}"
                    )
                self._last_sequence = sequence
                taken.append(Event(kind, word >> 24 & 0xFF, word >> 32, sequence, raw[16:]))
            self.memory[at : at + 8 * words] = bytes(8 * words)
            self._consumed += 8 * words
        self.store(EVENT_CONSUMED, self._consumed)
        return taken

    def write(self, commands: list[Command]) -> None:
        """The mover sees all of them at once, as far as the ring has room."""
        for command in commands:
            command.id = command.id or self._last_id + 1
            self._last_id = command.id
            while self._written - self.load(COMMAND_CONSUMED) >= COMMAND_RING_BYTES:
                self.store(COMMAND_WRITTEN, self._written)
                self.wake_mover()
                time.sleep(0.001)
            at = CONTROL_BYTES + EVENT_RING_BYTES + self._written % COMMAND_RING_BYTES
            self.memory[at : at + 64] = command.pack()
            self._written += 64
        self.store(COMMAND_WRITTEN, self._written)

    def wake_mover(self) -> None:
        if self.load(MOVER_SLEEPS, "I"):
            os.eventfd_write(self.mover_fd, 1)

    def send(self, *commands: Command) -> None:
        """Commands out of the blue; only when no events come in meanwhile."""
        self.write(list(commands))
        self.wake_mover()

    def turn(self) -> bool:
        events = self.take()
        for event in events:
            if self._delay:
                time.sleep(self._delay)
            self.events.append(event)
            self.write(self._decide(event))
            self.store(DECIDED_SEQUENCE, event.sequence)
            self.wake_mover()
        return bool(events)

    def serve(self) -> None:
        while True:
            if self.paused.is_set():
                time.sleep(0.01)
            elif self.turn():
                continue
            self.store(DAEMON_SLEEPS, 1, "I")
            if not self.paused.is_set() and self.load(
                CONTROL_BYTES + self._consumed % EVENT_RING_BYTES
            ):
                continue
            ready, _, _ = select.select([self.daemon_fd, self.connection.fileno()], [], [], 0.05)
            self.store(DAEMON_SLEEPS, 0, "I")
            if self.daemon_fd in ready:
                os.eventfd_read(self.daemon_fd)
            if self.connection.fileno() in ready:
                self.paused.clear()
                while self.turn():
                    pass
                return


LIBRARIES: dict[Path, Path] = {}  # whose daemon is wanted, by runtime folder; else the shim's


def socket_of(folder: Path) -> Path:
    """Where that library looks for its daemon."""
    return daemon_files(folder, LIBRARIES.get(folder, SHIM)).socket


class FakeDaemon:
    """Serves the socket of a folder. refuse: text of a refusal; answer: raw bytes instead of a
    welcome; mute: never answers.
    """

    def __init__(
        self,
        folder: Path,
        decide: Decide | None = None,
        *,
        delay: float = 0,
        refuse: str | None = None,
        answer: bytes | None = None,
        mute: bool = False,
    ) -> None:
        self._decide = decide or (lambda event: [])
        self._delay, self._refuse, self._answer, self._mute = delay, refuse, answer, mute
        self.sessions: list[Session] = []
        self._threads: list[threading.Thread] = []
        self._connections: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(socket_of(folder)))
        self._listener.listen(8)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            if self._mute:
                continue
            message, descriptors, _, _ = socket.recv_fds(connection, 1 << 17, 3)
            if self._refuse is not None or self._answer is not None:
                text = (self._refuse or "").encode()
                connection.send(
                    self._answer
                    if self._answer is not None
                    else struct.pack("<8sII", b"DEEPUMNO", 2, len(text)) + text
                )
                for fd in descriptors:
                    os.close(fd)
                continue
            session = Session(connection, message, list(descriptors), self._decide, self._delay)
            thread = threading.Thread(target=session.serve, daemon=True)
            thread.start()
            self._threads.append(thread)
            self.sessions.append(session)
            connection.send(struct.pack("<8sII", b"DEEPUMOK", 2, 0))

    def session(self, timeout: float = 10) -> Session:
        """The first one, once it is there."""
        until = time.monotonic() + timeout
        while not self.sessions:
            assert time.monotonic() < until, "no program connected"
            time.sleep(0.005)
        return self.sessions[0]

    def finished(self) -> Session:
        """The only session, after its program has gone."""
        self.session()
        for thread in self._threads:
            thread.join(20)
            assert not thread.is_alive(), "the session did not end"
        assert len(self.sessions) == 1
        assert not self.sessions[0].problems, self.sessions[0].problems
        return self.sessions[0]

    def close(self) -> None:
        with contextlib.suppress(OSError):  # closed before
            # Wakes the thread that accepts: until then the socket lives on.
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            connection.close()

    def __enter__(self) -> FakeDaemon:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
