"""The control channel: whatever is asked is answered in one line, and the daemon goes on."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from fake_program import FakeProgram
from running import socket_of

if TYPE_CHECKING:
    from conftest import Daemon

VERBS: tuple[Any, ...] = ("list", "daemon", "set", "end", "", "stop ", None, 1, [], {})
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 7, 1 << 31, 1 << 62, 1 << 63, -(1 << 70), 0.5, 1e308, "", "own"),
    *("on-demand", "correlation", "planned", "8GiB", "\0", "\n", "x" * 5000, [], [1], {}, {"a": 1}),
)
NAMES = ("session", "detach", "budget_bytes", "prefetch_degree", "policy", "version", "ask", "\0")
BYTES = (
    b"{",
    b"{}",
    b'{"',
    b"{" * 4000,
    b'{"version":' + b"[" * 20000,
    b"{\xff\xfe",
    b"{" + b" " * 65536,
)


def connect(folder: Path) -> socket.socket:
    """To the daemon; nothing said yet."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made.connect(str(socket_of(folder)))
    made.settimeout(20)
    return made


def answer(connection: socket.socket, request: bytes) -> dict[str, Any]:
    """One line, of JSON."""
    connection.send(request)
    line = connection.recv(1 << 20)
    while not line.endswith(b"\n"):
        line += connection.recv(1 << 20)
    assert line.count(b"\n") == 1
    document: dict[str, Any] = json.loads(line)
    assert document["version"] == 1
    return document


def request(random: Random, sessions: list[int]) -> bytes:
    """Sound, nearly so, or noise. None asks the daemon to end, nor a program."""
    if random.random() < 0.1:
        return random.choice(BYTES)
    fields: dict[str, Any] = {"version": 1, "ask": random.choice(VERBS)}
    for name in random.sample(NAMES, random.randrange(len(NAMES))):
        fields[name] = random.choice(VALUES)
    if random.random() < 0.6:
        fields["session"] = random.choice(sessions)
    if fields.get("ask") == "end":
        fields["detach"] = random.choice(("yes", 1, [], None))  # none of which it takes
    made = json.dumps(fields).encode()
    if random.random() < 0.2:
        at = random.randrange(1, len(made))
        made = made[:at] + bytes([random.randrange(256)]) + made[at + 1 :]
    return made if b'"end"' not in made or b"detach" in made else b"{}"


@pytest.mark.parametrize("seed", range(8))
def test_random_requests(daemon: Daemon, seed: int) -> None:
    random, before = Random(seed), daemon.holding()
    program = FakeProgram(daemon.folder, {"DEEPUM_LAUNCH_QUEUE": "0"}, pid=5)
    program.train(4)
    with connect(daemon.folder) as asker:
        sessions = [
            each["session"] for each in answer(asker, b'{"version":1,"ask":"list"}')["sessions"]
        ]
        answers = [answer(asker, request(random, sessions)) for _ in range(250)]
        errors = [document["error"] for document in answers if "error" in document]
        assert all(len(error) < 1000 and "\n" not in error for error in errors)
        assert 20 < len(errors) < 250
        assert not [error for error in errors if error.startswith("control:")]
        program.train(2, set_up=False)
    program.close()
    daemon.check(before)


def test_clients_that_leave_in_the_middle(daemon: Daemon) -> None:
    before = daemon.holding()
    for _ in range(100):
        with connect(daemon.folder) as asker:
            asker.send(b'{"version":1,"ask":"daemon"}')
    daemon.check(before)


def test_a_client_that_does_not_read_holds_up_nobody(daemon: Daemon) -> None:
    before = daemon.holding()
    silent = connect(daemon.folder)
    silent.setblocking(False)
    try:
        while True:
            silent.send(b'{"version":1,"ask":"daemon"}')
    except BlockingIOError:
        daemon.serves()
        with connect(daemon.folder) as asker:
            assert "daemon" in answer(asker, b'{"version":1,"ask":"daemon"}')
    silent.close()
    daemon.check(before)
