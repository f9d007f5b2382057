"""The daemon's second kind of client: what it is told, and what it may change."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_program import FakeProgram, RefusedError
from running import socket_of, wait_until

from deepum.client.channel import Channel, NoDaemonError
from deepum.daemon.steering import Changes
from deepum.errors import DeepumError

CARD = 64 << 20
EVICT = 2  # a kind of command
SETTINGS = {"DEEPUM_LAUNCH_QUEUE": "0", "DEEPUM_GPU_MEMORY": "96MiB"}


@pytest.fixture
def channel(daemon: subprocess.Popen[str], environment: dict[str, str]) -> Iterator[Channel]:
    """To the daemon."""
    with Channel(environment) as made:
        yield made


class Raw:
    """A client that sends what it likes."""

    def __init__(self, folder: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(str(socket_of(folder)))
        self.socket.settimeout(20)

    def ask(self, request: bytes) -> dict[str, Any]:
        self.socket.send(request)
        answer: dict[str, Any] = json.loads(self.socket.recv(1 << 20))
        return answer

    def close(self) -> None:
        self.socket.close()


def test_sessions_are_told_with_live_figures(channel: Channel, runtime_dir: Path) -> None:
    assert channel.sessions() == []
    program = FakeProgram(runtime_dir, SETTINGS)
    program.train(30)
    (session,) = channel.sessions()
    assert (session.pid, session.device, session.policy) == (os.getpid(), "cuda", "correlation")
    assert Path(session.program.split(" ")[0]).name.startswith("py")
    assert session.launches == 180 and session.moves_given > 0
    assert session.allocated_bytes == 6 * 16 << 20
    assert session.resident_bytes <= session.capacity_bytes == CARD
    assert session.bytes_in == session.bytes_prefetched > 0 and session.bytes_out > 0
    assert session.budget_bytes == 96 << 20
    # A real GPU's driver tells neither, and there is no other clock than the daemon's.
    assert session.prefetch_accuracy is None and session.gpu_time_s is None and not session.virtual
    program.train(1, set_up=False)
    (later,) = channel.sessions()
    assert later.launches == 186 and later.at_s > session.at_s
    program.close()
    assert wait_until(lambda: channel.sessions() == [])


def test_the_daemon_tells_of_itself(
    channel: Channel, daemon: subprocess.Popen[str], runtime_dir: Path
) -> None:
    program = FakeProgram(runtime_dir)
    with pytest.raises(RefusedError):
        FakeProgram(runtime_dir, hello=b"nonsense")
    state = channel.daemon()
    assert (state.pid, state.sessions, state.served, state.refused) == (daemon.pid, 1, 1, 1)
    assert state.socket == str(socket_of(runtime_dir))
    assert state.memory_bytes > 1 << 20 and state.uptime_s > 0 and state.watchers == 1
    assert (state.idle_s, state.metrics_port) == (0, None)
    program.close()


def test_a_smaller_budget_reaches_a_program_that_launches_nothing(
    channel: Channel, runtime_dir: Path
) -> None:
    program = FakeProgram(runtime_dir, SETTINGS)
    program.device(2 * CARD)
    for slot in range(12):
        program.allocate(slot, 16 << 20)
    program.train(6, arrays=12, set_up=False)
    program.commands()
    (session,) = channel.sessions()
    assert session.resident_bytes > CARD
    channel.set(session.session, Changes(budget_bytes=CARD))
    commands: list[tuple[int, ...]] = []

    def came() -> bool:
        commands.extend(program.commands())
        return bool(commands)

    assert wait_until(came)
    assert {command[9] for command in commands} == {EVICT}
    (now,) = channel.sessions()
    assert now.resident_bytes == now.capacity_bytes == now.budget_bytes == CARD
    channel.set(session.session, Changes(budget_bytes=0))
    (now,) = channel.sessions()
    assert (now.budget_bytes, now.capacity_bytes) == (96 << 20, 2 * CARD)
    program.close()


def test_policy_and_degree_are_changed_and_come_back(channel: Channel, runtime_dir: Path) -> None:
    program = FakeProgram(runtime_dir, SETTINGS)
    program.train(6)
    (session,) = channel.sessions()
    channel.set(session.session, Changes(policy="on-demand", prefetch_degree=7))
    program.commands()
    assert not any(program.train(3, set_up=False))
    (off,) = channel.sessions()
    assert (off.policy, off.own_policy, off.prefetch_degree) == ("on-demand", "correlation", 7)
    channel.set(session.session, Changes(policy="correlation"))
    assert any(program.train(3, set_up=False))
    assert channel.sessions()[0].policy == "correlation"
    program.close()


def test_a_session_that_began_on_demand_gets_no_policy(channel: Channel, runtime_dir: Path) -> None:
    program = FakeProgram(runtime_dir, {"DEEPUM_POLICY": "on-demand"})
    (session,) = channel.sessions()
    with pytest.raises(DeepumError, match="policy: the session began with on-demand; start"):
        channel.set(session.session, Changes(policy="correlation"))
    program.close()


def test_what_was_changed_is_in_the_log_and_replays(
    channel: Channel, runtime_dir: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    program = FakeProgram(runtime_dir, {**SETTINGS, "DEEPUM_RECORD": str(log)})
    program.train(6)
    (session,) = channel.sessions()
    channel.set(session.session, Changes(prefetch_degree=2))
    program.train(3, set_up=False)
    channel.set(session.session, Changes(policy="on-demand"))
    program.train(1, set_up=False)
    channel.set(session.session, Changes(policy="correlation", prefetch_degree=100))
    program.train(4, set_up=False)
    program.close()
    assert wait_until(lambda: channel.sessions() == [])
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "deepum", "log", "replay", log],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran
    shown = subprocess.run(
        [sys.executable, "-P", "-m", "deepum", "log", "show", log],
        env=environment,
        capture_output=True,
        text=True,
    ).stdout
    assert shown.count(" setting ") == 4


def test_a_program_that_is_let_go_goes_on_alone(channel: Channel, runtime_dir: Path) -> None:
    program, other = FakeProgram(runtime_dir), FakeProgram(runtime_dir)
    first, second = channel.sessions()
    channel.end(first.session, detach=True)
    assert wait_until(lambda: program.daemon_left)
    assert wait_until(lambda: [each.session for each in channel.sessions()] == [second.session])
    assert not other.daemon_left
    other.train(2)
    for each in (program, other):
        each.close()


def test_a_program_is_asked_to_end(channel: Channel, runtime_dir: Path) -> None:
    code = (
        f"import sys, time; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"from pathlib import Path; from fake_program import FakeProgram\n"
        f"program = FakeProgram(Path({str(runtime_dir)!r})); print('served', flush=True)\n"
        f"time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"served\n"
        (session,) = channel.sessions()
        assert session.pid == process.pid
        channel.end(session.session)
        assert process.wait(20) == -15
    assert wait_until(lambda: channel.sessions() == [])


def test_the_daemon_ends_in_order_when_asked(
    channel: Channel, daemon: subprocess.Popen[str], runtime_dir: Path
) -> None:
    program = FakeProgram(runtime_dir)
    channel.stop()
    assert daemon.wait(20) == 0
    assert program.daemon_left
    assert not socket_of(runtime_dir).exists()
    with pytest.raises(NoDaemonError):
        channel.sessions()
    program.close()


def test_who_watches_does_not_keep_the_daemon(
    environment: dict[str, str], runtime_dir: Path
) -> None:
    subprocess.run(
        [sys.executable, "-P", "-m", "deepum", "daemon", "--detach"],
        env={**environment, "DEEPUM_DAEMON_IDLE": "1"},
        check=True,
    )
    assert wait_until(socket_of(runtime_dir).exists)
    with Channel(environment) as channel:
        assert channel.daemon().idle_s == 1
        assert wait_until(lambda: not socket_of(runtime_dir).exists(), 10)


@pytest.mark.parametrize(
    ("request_line", "error"),
    [
        (b"{", "request: is no JSON; send one object a line"),
        (b'{"version": 2, "ask": "list"}', "version: the daemon speaks 1, and not 2; use"),
        (b'{"ask": "list"}', "version: the daemon speaks 1, and not None; use"),
        (b'{"version": 1}', "ask: None is no request; ask one of list, daemon, set, end, stop"),
        (b'{"version": 1, "ask": ["list"]}', "ask: ['list'] is no request"),
        (b'{"version": 1, "ask": "set", "session": 99}', "session: there is no 99;"),
        (b'{"version": 1, "ask": "end"}', "session: there is no None;"),
        (b'{"version": 1, "ask": "set", "session": true}', "session: there is no True;"),
    ],
)
def test_a_bad_request_gets_a_line_and_the_next_one_is_served(
    daemon: subprocess.Popen[str], runtime_dir: Path, request_line: bytes, error: str
) -> None:
    raw = Raw(runtime_dir)
    answer = raw.ask(request_line)
    assert answer["error"].startswith(error) and "\n" not in answer["error"]
    assert raw.ask(b'{"version": 1, "ask": "list"}') == {"version": 1, "sessions": []}
    raw.close()


def test_a_setting_that_changes_after_a_failed_log_takes_no_decision_back(
    channel: Channel, runtime_dir: Path
) -> None:
    program = FakeProgram(runtime_dir, SETTINGS | {"DEEPUM_RECORD": "/dev/full"})
    program.train(30)
    (session,) = channel.sessions()
    assert session.warnings == 1, "the log was given up"
    decided = program.decided
    channel.set(session.session, Changes(prefetch_degree=2))
    channel.sessions()  # the loop has had a turn since
    assert program.decided == decided
    program.close()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({}, "set: nothing is to change"),
        ({"budget_bytes": 5}, "budget_bytes: 5 is none"),
        ({"budget_bytes": "8GiB"}, "budget_bytes: '8GiB' is none"),
        ({"budget_bytes": 1 << 63}, "budget_bytes: 9223372036854775808 is none"),
        ({"budget_bytes": True}, "budget_bytes: True is none"),
        ({"prefetch_degree": -1}, "prefetch_degree: -1 is none; give 0 to 1048576"),
        ({"prefetch_degree": 1 << 21}, "prefetch_degree: 2097152 is none"),
        ({"policy": "best"}, "policy: 'best' is none; give one of on-demand, correlation"),
        ({"policy": "planned"}, "policy: the session began with correlation; give on-demand"),
    ],
)
def test_what_cannot_be_set_changes_nothing(
    daemon: subprocess.Popen[str],
    channel: Channel,
    runtime_dir: Path,
    changes: dict[str, object],
    error: str,
) -> None:
    program, raw = FakeProgram(runtime_dir), Raw(runtime_dir)
    (before,) = channel.sessions()
    request = {"version": 1, "ask": "set", "session": before.session, **changes}
    assert raw.ask(json.dumps(request).encode())["error"].startswith(error)
    (now,) = channel.sessions()
    assert (now.policy, now.prefetch_degree, now.budget_bytes) == (
        before.policy,
        before.prefetch_degree,
        before.budget_bytes,
    )
    program.close()
    raw.close()


def test_too_many_that_watch_are_told_so(daemon: subprocess.Popen[str], runtime_dir: Path) -> None:
    watchers = [Raw(runtime_dir) for _ in range(17)]
    answers = [each.ask(b'{"version": 1, "ask": "daemon"}') for each in watchers]
    refused = [each for each in answers if "error" in each]
    assert [each["error"].startswith("daemon: already has 16") for each in refused] == [True]
    for each in watchers:
        each.close()
    program = FakeProgram(runtime_dir)
    program.train(1)
    program.close()


def test_figures_of_many_sessions_come_in_one_line(channel: Channel, runtime_dir: Path) -> None:
    programs = [FakeProgram(runtime_dir) for _ in range(60)]  # more than one message holds
    assert len(channel.sessions()) == 60
    for each in programs:
        each.close()


def test_a_mover_that_lies_is_not_believed(channel: Channel, runtime_dir: Path) -> None:
    program = FakeProgram(runtime_dir)
    struct.pack_into("<Q", program.memory, 264, (1 << 64) - 1)  # moves_waiting
    (session,) = channel.sessions()
    assert session.moves_waiting == 1 << 32
    program.close()
