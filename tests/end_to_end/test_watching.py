"""Programs on the simulated GPU that are watched and steered while they run."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyte
import pytest
from running import wait_until

DEEPUM = [sys.executable, "-P", "-m", "deepum"]
MIB = 1 << 20
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def running(environment: dict[str, str], sweep: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A program that sweeps over 400 MiB on a card of 256 MiB for as long as it may."""
    flags = ["--device", "sim", "--gpu-memory", "256MiB"]
    process = subprocess.Popen(
        [*DEEPUM, "run", *flags, "--", *sweep, "10", "40", "1000000"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().startswith("round ")
    yield process
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def drained(process: subprocess.Popen[str]) -> None:
    """Its output so far, lest it waits for somebody to read it."""
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    with contextlib.suppress(BlockingIOError):
        while os.read(process.stdout.fileno(), 1 << 16):
            pass


def session(deepum: Command, process: subprocess.Popen[str]) -> dict[str, Any]:
    """What `deepum ps` tells of the one program."""
    drained(process)
    ran = deepum("ps", "--json")
    assert ran.returncode == 0, ran.stderr
    (fields,) = json.loads(ran.stdout)["sessions"]
    assert isinstance(fields, dict)
    return fields


def settled(deepum: Command, process: subprocess.Popen[str]) -> dict[str, Any]:
    """Once steps are found."""
    assert wait_until(lambda: session(deepum, process)["steps"] > 2)
    return session(deepum, process)


def test_ps_tells_what_the_simulated_gpu_counts(
    deepum: Command, running: subprocess.Popen[str]
) -> None:
    fields = settled(deepum, running)
    assert fields["device"] == "sim:v100-16gb" and fields["policy"] == "correlation"
    assert fields["capacity_bytes"] <= 256 * MIB < 400 * MIB <= fields["allocated_bytes"]
    assert fields["step_launches"] > 0
    assert fields["bytes_in"] > 0 and fields["bytes_out"] > 0 and fields["faults"] > 0
    assert 0 < fields["prefetch_accuracy"] <= 1 and 0 < fields["prefetch_coverage"] <= 1
    assert fields["gpu_time_s"] > fields["stall_s"] >= 0
    assert fields["rates"]["clock"] == "virtual"
    table = deepum("ps")
    head, line = table.stdout.splitlines()
    assert head.startswith("PID") and str(fields["pid"]) in line and "sweep" in line
    assert "virtual clock" in table.stderr


def test_settings_change_what_a_program_does(
    deepum: Command, running: subprocess.Popen[str]
) -> None:
    pid = str(settled(deepum, running)["pid"])
    assert deepum("set", pid, "--budget", "128MiB").returncode == 0
    fields = session(deepum, running)
    assert fields["budget_bytes"] == fields["capacity_bytes"] == 128 * MIB
    assert wait_until(lambda: session(deepum, running)["resident_bytes"] <= 130 * MIB)
    assert deepum("set", pid, "--policy", "on-demand", "--degree", "5").returncode == 0
    fields = session(deepum, running)
    assert (fields["policy"], fields["prefetch_degree"]) == ("on-demand", 5)
    before = session(deepum, running)
    later = session(deepum, running)
    assert later["moves_given"] == before["moves_given"] and later["launches"] > before["launches"]
    assert later["faults"] > before["faults"]
    assert deepum("set", pid, "--policy", "correlation", "--budget", "own").returncode == 0
    assert wait_until(lambda: session(deepum, running)["moves_given"] > later["moves_given"])
    assert session(deepum, running)["capacity_bytes"] == fields["capacity_bytes"] * 2


def test_a_program_that_is_stopped_ends_by_the_signal(
    deepum: Command, running: subprocess.Popen[str]
) -> None:
    pid = str(session(deepum, running)["pid"])
    ran = deepum("stop", pid)
    assert (ran.returncode, ran.stdout) == (0, f"{pid} was asked to end\n")

    def ended() -> bool:
        drained(running)
        return running.poll() is not None

    assert wait_until(ended)
    assert running.returncode in (-signal.SIGTERM, 128 + signal.SIGTERM)
    assert json.loads(deepum("ps", "--json").stdout)["sessions"] == []


def test_a_program_goes_on_when_its_serving_ends(
    deepum: Command, running: subprocess.Popen[str]
) -> None:
    pid = session(deepum, running)["pid"]
    ran = deepum("stop", "--all", "--detach")
    assert (ran.returncode, ran.stdout) == (0, f"{pid} goes on without deepum\n")
    assert wait_until(lambda: json.loads(deepum("ps", "--json").stdout)["sessions"] == [])
    drained(running)
    assert running.poll() is None and running.stdout is not None
    more = b""
    until = time.monotonic() + 30
    while b"round" not in more and time.monotonic() < until:
        select.select([running.stdout], [], [], 1)
        with contextlib.suppress(BlockingIOError):
            more += os.read(running.stdout.fileno(), 4096)
    assert b"round" in more


def test_the_daemon_is_told_of_and_stopped(deepum: Command, running: subprocess.Popen[str]) -> None:
    status = deepum("daemon", "status")
    assert status.returncode == 0
    assert "programs  1 now, 1 in all, 0 refused" in status.stdout
    state = json.loads(deepum("daemon", "status", "--json").stdout)["daemon"]
    ran = deepum("daemon", "stop")
    assert (ran.returncode, ran.stdout) == (0, f"{state['pid']} ends\n")
    assert wait_until(lambda: not Path(f"/proc/{state['pid']}").exists())
    drained(running)
    assert running.poll() is None


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("daemon", "status"), 1, "daemon: none runs;"),
        (("daemon", "stop"), 1, "daemon: none runs;"),
        (("stop", "--all"), 1, "daemon: none runs;"),
        (("set", "1", "--degree", "3"), 1, "daemon: none runs;"),
        (("stop",), 2, "stop: names no program;"),
        (("stop", "--all", "3"), 2, "stop: names no program;"),
        (("set", "1"), 2, "set: nothing is to change;"),
        (("set", "1", "--budget", "5"), 2, "--budget: '5' is out of range;"),
        (("set", "1", "--policy", "best"), 2, "policy: 'best' is none;"),
        (("set", "1", "--degree", "-1"), 2, "prefetch_degree: -1 is none;"),
        (("top",), 2, "top: is on no terminal; use --once or --json"),
    ],
)
def test_errors_are_a_line(
    deepum: Command, arguments: tuple[str, ...], code: int, error: str
) -> None:
    ran = deepum(*arguments)
    assert (ran.returncode, ran.stdout) == (code, "")
    assert ran.stderr.startswith(f"deepum: error: {error}") and ran.stderr.count("\n") == 1


def test_a_process_that_is_not_served_is_named(
    deepum: Command, running: subprocess.Popen[str]
) -> None:
    for arguments in (("stop", "1"), ("set", "1", "--degree", "3")):
        ran = deepum(*arguments)
        assert ran.returncode == 1
        assert ran.stderr.startswith("deepum: error: 1: no such process is served;")
    assert running.poll() is None


def test_nothing_runs(deepum: Command) -> None:
    assert json.loads(deepum("ps", "--json").stdout) == {"version": 1, "sessions": []}
    ran = deepum("ps")
    assert ran.returncode == 0 and ran.stdout.splitlines()[0].startswith("PID")
    assert deepum("top", "--once").returncode == 0


def test_top_looks_once_into_a_pipe(deepum: Command, running: subprocess.Popen[str]) -> None:
    fields = settled(deepum, running)
    ran = deepum("top", "--once")
    assert ran.returncode == 0, ran.stderr
    head, line, *detail = ran.stdout.splitlines()
    assert head.split()[:2] == ["PID", "PROGRAM"] and str(fields["pid"]) in line
    assert any(each.startswith("resident  ") and "on the GPU" in each for each in detail)
    assert "\x1b" not in ran.stdout
    (same,) = json.loads(deepum("top", "--json").stdout)["sessions"]
    assert same["session"] == fields["session"]


class Terminal:
    """A command in a pseudo-terminal of 80 columns and 24 lines."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self.screen)
        self._own, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            command,
            env={**environment, "TERM": "xterm-256color"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def shows(self, text: str, meanwhile: Callable[[], object], seconds: float = 30) -> bool:
        """Waits until it does."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            meanwhile()
            if any(text in line for line in self.screen.display):
                return True
            if select.select([self._own], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    self._stream.feed(os.read(self._own, 1 << 16))
        return False

    def press(self, keys: str) -> None:
        """As if they were typed."""
        os.write(self._own, keys.encode())

    def close(self) -> int:
        """Its exit code, once it has ended."""
        until = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < until:
            if select.select([self._own], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    os.read(self._own, 1 << 16)
        os.close(self._own)
        self.process.kill()
        return self.process.wait()


def test_top_in_a_terminal(
    deepum: Command, running: subprocess.Popen[str], environment: dict[str, str]
) -> None:
    fields = settled(deepum, running)
    terminal = Terminal([*DEEPUM, "top", "--seconds", "0.3"], environment)

    def shows(text: str) -> bool:
        return terminal.shows(text, lambda: drained(running))

    assert shows(f"program   {fields['pid']} "), terminal.screen.display
    assert shows("s Sort  b Budget  d Degree")
    terminal.press("p")
    assert shows("sim:v100-16gb, on-demand, degree 8192"), terminal.screen.display
    terminal.press("d")
    assert shows("Launches that prefetching may run ahead")
    terminal.press("77\r")
    assert shows("on-demand, degree 77"), terminal.screen.display
    terminal.press("x")
    assert shows("Write yes")
    terminal.press("yes\r")
    assert shows("No program is served."), terminal.screen.display
    assert wait_until(lambda: running.poll() is not None)
    terminal.press("q")
    assert terminal.close() == 0
