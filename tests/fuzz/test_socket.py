"""The daemon's socket: whatever is sent is refused in one line or served, and the daemon
goes on.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from fake_program import COMMAND_RING, CONTROL, EVENT_RING, FakeProgram, RefusedError, shared_memory
from running import socket_of, wait_until

if TYPE_CHECKING:
    from conftest import Daemon

THINGS = ("hello: ", "daemon: ", "settings: ", "profile ", "record ", "DEEPUM_", "request: ")
HELLO = struct.Struct("<8sIIII")
WHOLE = CONTROL + EVENT_RING + COMMAND_RING


def connect(folder: Path) -> socket.socket:
    """To the daemon; nothing said yet."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made.connect(str(socket_of(folder)))
    made.settimeout(10)
    return made


def ask(folder: Path, message: bytes, descriptors: list[int]) -> str | None:
    """Sends one message: the refusal, "" for a welcome, None for a connection that was closed
    without a word. The descriptors stay.
    """
    with connect(folder) as sender:
        try:
            socket.send_fds(sender, [message], descriptors)
            answer = sender.recv(65536)
        except (ConnectionError, BrokenPipeError):
            return None
    if not answer:
        return None
    if message[:1] == b"{":  # no hello, but a request of the control channel
        error: str = json.loads(answer)["error"]
        return error
    magic, version, length = struct.unpack_from("<8sII", answer)
    assert version == 2 and len(answer) == 16 + length and magic in (b"DEEPUMOK", b"DEEPUMNO")
    text = answer[16:].decode()
    assert (magic == b"DEEPUMOK") == (text == "")
    assert "\n" not in text and len(text) <= 900
    return text


def refused(folder: Path, message: bytes, descriptors: list[int]) -> bool:
    """In one line that names the thing."""
    text = ask(folder, message, descriptors)
    return text is not None and text.startswith(THINGS)


def hello(settings: bytes = b"", pid: int = 77) -> bytes:
    """A sound one."""
    return HELLO.pack(b"DEEPUMHI", 2, len(settings), pid, 0) + settings


class Descriptors:
    """What a program sends along."""

    def __init__(self) -> None:
        self.sound = [shared_memory(), os.eventfd(0), os.eventfd(0)]
        pipe = os.pipe()
        file = os.memfd_create("plain")
        self.odd = [
            *pipe,
            file,
            os.open("/", os.O_RDONLY),
            os.open("/dev/zero", os.O_RDWR),
            os.open("/proc/self/mem", os.O_RDWR),
        ]
        self.odd += [
            os.open(tempfile.gettempdir(), os.O_PATH),
            socket.socket(socket.AF_UNIX).detach(),
            select.epoll().fileno(),
        ]
        self.odd = [fd for fd in self.odd if _is_open(fd)]

    def close(self) -> None:
        """All of them."""
        for fd in (*self.sound, *self.odd):
            os.close(fd)


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


@pytest.fixture
def descriptors(request: pytest.FixtureRequest) -> Descriptors:
    made = Descriptors()
    request.addfinalizer(made.close)
    return made


@pytest.mark.parametrize("seed", range(3))
def test_random_messages_with_random_descriptors(
    daemon: Daemon, runtime_dir: Path, descriptors: Descriptors, seed: int
) -> None:
    random, before = Random(seed), daemon.holding()
    for _ in range(300):
        size = random.choice((1, 7, 8, 23, 24, 25, random.randrange(200), random.randrange(70000)))
        message = random.randbytes(size)
        if random.random() < 0.5:
            message = (b"DEEPUMHI" + message)[:size]
        sent = random.choices(
            descriptors.sound + descriptors.odd, k=random.choice((0, 1, 2, 3, 3, 4, 16, 17))
        )
        assert refused(runtime_dir, message, sent), (message[:40], sent)
    daemon.check(before)


@pytest.mark.parametrize("seed", range(3))
def test_a_sound_hello_with_a_few_bytes_changed(
    daemon: Daemon, runtime_dir: Path, descriptors: Descriptors, seed: int
) -> None:
    random, before = Random(seed), daemon.holding()
    settings = b"DEEPUM_POLICY=on-demand\0DEEPUM_PREFETCH_DEGREE=12\0DEEPUM_SYNC=1\0"
    welcomed = 0
    for _ in range(300):
        message = bytearray(hello(settings))
        for _ in range(random.choice((1, 1, 2, 5))):
            how, at = random.random(), random.randrange(len(message))
            if how < 0.6:
                message[at] = random.choice((0, 0xFF, random.randrange(256), message[at] ^ 1))
            elif how < 0.8:
                del message[at]
            else:
                message.insert(at, random.randrange(256))
        text = ask(runtime_dir, bytes(message), descriptors.sound)
        assert text is not None, message
        welcomed += text == ""
    assert 10 < welcomed < 200, "some of it means nothing, most of it is refused"
    daemon.check(before)


@pytest.mark.parametrize("count", [0, 1, 2, 4, 15, 16, 17, 64, 253])
def test_too_few_and_too_many_descriptors(
    daemon: Daemon, runtime_dir: Path, descriptors: Descriptors, count: int
) -> None:
    before = daemon.holding()
    for _ in range(20):
        assert refused(runtime_dir, hello(), (descriptors.sound * 85)[:count])
    daemon.check(before)


def test_descriptors_of_the_wrong_kind_in_every_place(
    daemon: Daemon, runtime_dir: Path, descriptors: Descriptors
) -> None:
    before = daemon.holding()
    assert len(descriptors.odd) >= 8
    for odd in (*descriptors.odd, *descriptors.sound):
        for place in range(3):
            sent = list(descriptors.sound)
            if sent[place] == odd or {sent[place], odd} <= set(descriptors.sound[1:]):
                continue
            sent[place] = odd
            assert refused(runtime_dir, hello(), sent), (place, os.readlink(f"/proc/self/fd/{odd}"))  # noqa: PTH115
    daemon.check(before)


@pytest.mark.parametrize(
    ("size", "rings"),
    [
        *(
            (size, (EVENT_RING, COMMAND_RING))
            for size in (0, 1, CONTROL - 1, CONTROL, WHOLE - 4096, WHOLE - 1)
        ),
        *(
            (WHOLE, rings)
            for rings in (
                (0, 0),
                (0, COMMAND_RING),
                (EVENT_RING, 0),
                (EVENT_RING + 1, COMMAND_RING),
                (64, 64),
                (1 << 31, 1 << 31),
            )
        ),
        (WHOLE, (EVENT_RING, COMMAND_RING * 2)),
        (WHOLE, (EVENT_RING, 32)),
    ],
)
def test_shared_memory_of_the_wrong_size(
    daemon: Daemon, runtime_dir: Path, size: int, rings: tuple[int, int]
) -> None:
    before = daemon.holding()
    memory, events = (
        os.memfd_create("deepum-test", os.MFD_ALLOW_SEALING),
        [os.eventfd(0), os.eventfd(0)],
    )
    os.ftruncate(memory, max(size, 20))
    os.pwrite(memory, struct.pack("<8sIII", b"DEEPUMRG", 2, *rings), 0)
    os.ftruncate(memory, size)
    fcntl.fcntl(memory, 1033, 0x0002)  # F_ADD_SEALS: SHRINK
    assert refused(runtime_dir, hello(), [memory, *events])
    for fd in (memory, *events):
        os.close(fd)
    daemon.check(before)


def test_sealed_memory_cannot_be_taken_away_but_its_pages_can(
    daemon: Daemon, runtime_dir: Path
) -> None:
    """Cut off after the hello: the seal forbids it. A hole in it reads as zeroes, which is no
    record.
    """
    before = daemon.holding()
    program = FakeProgram(runtime_dir)
    program.train(2)
    for size in (0, 4096, WHOLE - 1):
        with pytest.raises(PermissionError):
            os.ftruncate(program.memory_fd, size)
    hole = [
        "fallocate",
        "--punch-hole",
        "--offset",
        "0",
        "--length",
        str(WHOLE),
        f"/proc/{os.getpid()}/fd/{program.memory_fd}",
    ]
    os.spawnvp(os.P_WAIT, hole[0], hole)
    os.eventfd_write(program.daemon_fd, 1)
    daemon.serves()
    program.close()
    daemon.check(before)


@pytest.mark.parametrize("seals", [0, 0x0001, 0x0004, 0x0002 | 0x0008, 0x0002 | 0x0010])
def test_memory_with_other_seals(daemon: Daemon, runtime_dir: Path, seals: int) -> None:
    """Without SHRINK, or with WRITE or FUTURE_WRITE on top."""
    before = daemon.holding()
    memory, events = shared_memory(seals=False), [os.eventfd(0), os.eventfd(0)]
    if seals:
        fcntl.fcntl(memory, 1033, seals)
    assert refused(runtime_dir, hello(), [memory, *events])
    for fd in (memory, *events):
        os.close(fd)
    daemon.check(before)


def test_eventfds_that_would_block(daemon: Daemon, runtime_dir: Path) -> None:
    """The mover's is full and nobody reads it; the session ends with its program all the same."""
    before = daemon.holding()
    program = FakeProgram(runtime_dir)
    os.set_blocking(program.mover_fd, True)
    program.train(1)
    os.set_blocking(program.mover_fd, False)
    os.eventfd_write(program.mover_fd, (1 << 64) - 2)
    struct.pack_into("<I", program.memory, 324, 1)  # mover_sleeps
    for slot in range(6):
        program.execute(1000 + slot, slot, 8)
    daemon.serves()
    program.close()
    daemon.check(before)


def test_peers_that_stop_before_their_message_or_leave(
    daemon: Daemon, runtime_dir: Path, descriptors: Descriptors
) -> None:
    before = daemon.holding()
    silent = [connect(runtime_dir) for _ in range(20)]
    for number, one in enumerate(silent[10:]):
        if number % 2:
            one.shutdown(socket.SHUT_WR)
        else:
            one.close()
    daemon.serves()
    for _ in range(50):  # gone before the answer
        with connect(runtime_dir) as sender:
            socket.send_fds(sender, [hello()], descriptors.sound)
    # Those that stay silent are let go after 5 s.
    assert wait_until(lambda: all(select.select([one], [], [], 0)[0] for one in silent[:10]))
    for one in silent:
        one.close()
    daemon.check(before)


def test_a_second_message_ends_the_session_in_one_line(daemon: Daemon, runtime_dir: Path) -> None:
    before = daemon.holding()
    program = FakeProgram(runtime_dir, pid=55)
    program.train(1)
    socket.send_fds(program.socket, [b"more"], [program.daemon_fd] * 20)
    assert wait_until(lambda: program.daemon_left)
    program.close()
    daemon.check(before)
    assert (
        "deepum: session of process 55 ended: the program sent a message that nobody expected"
        in daemon.messages()
    )


def test_hundreds_of_idle_connections_keep_nobody_out(daemon: Daemon, runtime_dir: Path) -> None:
    before = daemon.holding()
    idle = [connect(runtime_dir) for _ in range(400)]
    daemon.serves()
    assert sum(bool(select.select([one], [], [], 0)[0]) for one in idle) > 100, (
        "the oldest were let go"
    )
    for one in idle:
        one.close()
    daemon.check(before)


def test_a_daemon_short_of_descriptors_goes_on_when_there_are_some(
    start_daemon: Callable[..., Daemon], runtime_dir: Path
) -> None:
    daemon = start_daemon(descriptors=40)
    daemon.serves()
    before = daemon.holding()
    held: list[FakeProgram] = []
    for _ in range(12):
        try:
            held.append(FakeProgram(runtime_dir))
        except (RefusedError, OSError):
            break
    assert 3 < len(held) < 12
    idle = [connect(runtime_dir) for _ in range(30)]
    held[0].train(2)
    for program in held:
        program.close()
    for one in idle:
        one.close()
    assert wait_until(lambda: (daemon.descriptors(), daemon.maps()) == before), (
        "it has some again once it has seen that they are gone"
    )
    daemon.check(before)


def _settings(seed: int, folder: Path) -> bytes:
    random = Random(seed)
    fifo, loop, file = folder / "fifo", folder / "loop", folder / "file"
    for make in (
        lambda: os.mkfifo(fifo),
        lambda: loop.symlink_to(loop),
        lambda: file.write_text("x"),
    ):
        try:
            make()
        except FileExistsError:
            continue
    places = [
        str(place)
        for place in (
            fifo,
            loop,
            file,
            file / "x",
            folder,
            folder / "none" / "x",
            folder / ("x" * 300),
        )
    ]
    places += ["/dev/zero", "/dev/full", "/proc/self/mem", "x" * 5000, "\udcff", "a\nb", ""]
    values = [
        *places,
        "0",
        "-1",
        "1e9",
        "99999999999999999999",
        "9" * 5000,
        "nan",
        "on",
        "1TiB",
        "\u0663",
        " 12 ",
    ]
    names = [
        "PROFILE",
        "RECORD",
        "STATS_DIR",
        "POLICY",
        "PREFETCH_DEGREE",
        "TABLE_MEBIBYTES",
        "EXECUTION_IDS",
        "SYNC",
        "X\n",
    ]
    entries = []
    for _ in range(random.randrange(1, 4)):
        name = random.choice(names)
        value = random.choice(places if name in ("PROFILE", "RECORD", "STATS_DIR") else values)
        entries.append(f"DEEPUM_{name}={value}".encode(errors="surrogateescape") + b"\0")
    return b"".join(entries)


@pytest.mark.parametrize("seed", range(2))
def test_settings_that_nobody_should_have(
    daemon: Daemon, runtime_dir: Path, descriptors: Descriptors, tmp_path: Path, seed: int
) -> None:
    before = daemon.holding()
    welcomed = 0
    for number in range(200):
        settings = _settings(1000 * seed + number, tmp_path)
        text = ask(runtime_dir, hello(settings, number), descriptors.sound)
        assert text is not None, settings
        welcomed += text == ""
    assert 20 < welcomed < 180
    daemon.check(before)


def test_an_on_demand_daemon_logs_hostile_settings_in_one_line(
    environment: dict[str, str], runtime_dir: Path, descriptors: Descriptors
) -> None:
    starter = [sys.executable, "-P", "-m", "deepum.daemon"]
    subprocess.run(starter, env=environment | {"DEEPUM_DAEMON_IDLE": "1"}, check=True, timeout=30)
    assert wait_until(socket_of(runtime_dir).exists)
    for value in (b"\xff\xfe", b"a\nb\x0bc\xe2\x80\xa8d"):
        assert refused(runtime_dir, hello(b"DEEPUM_POLICY=" + value + b"\0"), descriptors.sound)
    log = (runtime_dir / "daemon.log").read_text().splitlines()
    assert [line.split(" ", 2)[2].split(":")[0] for line in log] == ["began", "refused", "refused"]
