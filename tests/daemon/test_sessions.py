"""Sessions with the daemon, from a program written in Python."""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from fake_program import COMMAND_BYTES, COMMAND_RING, FakeProgram, RefusedError, shared_memory
from running import socket_of, wait_until

from deepum.daemon import hello as daemon_hello


def test_the_socket_is_private(daemon: subprocess.Popen[str], runtime_dir: Path) -> None:
    assert stat.S_IMODE(socket_of(runtime_dir).stat().st_mode) == 0o600
    assert stat.S_IMODE(runtime_dir.stat().st_mode) == 0o700


def test_a_repeated_sweep_is_prefetched(daemon: subprocess.Popen[str], runtime_dir: Path) -> None:
    # It never waits: as if each launch did.
    program = FakeProgram(runtime_dir, {"DEEPUM_LAUNCH_QUEUE": "0"})
    rounds = program.train(6)
    program.close()
    assert not program.ahead(rounds[0])
    assert program.ahead(rounds[-1])


def test_on_demand_gives_no_commands(daemon: subprocess.Popen[str], runtime_dir: Path) -> None:
    program = FakeProgram(runtime_dir, {"DEEPUM_POLICY": "on-demand"})
    assert not any(program.train(4))
    program.close()


def test_faults_are_asked_for_from_the_start_until_the_program_is_known(
    daemon: subprocess.Popen[str], runtime_dir: Path
) -> None:
    program = FakeProgram(runtime_dir)
    assert program.wants_faults
    program.train(3)
    assert program.wants_faults
    program.train(60, set_up=False)
    assert not program.wants_faults
    program.wait_decided(program.execute(12345, 0, 1))
    assert program.wants_faults
    program.close()


def test_several_programs_at_once_do_not_disturb_each_other(
    daemon: subprocess.Popen[str], runtime_dir: Path
) -> None:
    alone = FakeProgram(runtime_dir)
    expected = alone.train(4)
    alone.close()
    programs = [FakeProgram(runtime_dir, pid=100 + i) for i in range(4)]
    answers = [program.train(1) for program in programs]
    for _ in range(3):
        for program, answer in zip(programs, answers, strict=True):
            answer += program.train(1, set_up=False)
    assert all(answer == expected for answer in answers)
    for program in programs:
        program.close()


def test_statistics_are_reported_when_the_program_goes(
    daemon: subprocess.Popen[str], runtime_dir: Path, tmp_path: Path
) -> None:
    program = FakeProgram(
        runtime_dir, {"DEEPUM_STATS_DIR": str(tmp_path), "DEEPUM_SYNC": "1"}, pid=77
    )
    assert json.loads((tmp_path / "session-77.open").read_text())["pid"] == 77
    program.train(3)
    program.close()
    assert wait_until((tmp_path / "session-77.json").exists)
    assert wait_until(lambda: not (tmp_path / "session-77.open").exists())
    session = json.loads((tmp_path / "session-77.json").read_text())
    assert session["core"]["launches"] == 18
    assert session["core"]["events"] == 1 + 6 + 18
    assert session["warnings"] == []


def test_events_written_just_before_the_end_are_counted(
    daemon: subprocess.Popen[str], runtime_dir: Path, tmp_path: Path
) -> None:
    program = FakeProgram(runtime_dir, {"DEEPUM_STATS_DIR": str(tmp_path)}, pid=78)
    program.device()
    program.allocate(0, 4 << 20)
    for i in range(2000):
        program.execute(i % 7, 0, 2)
    program.close()
    assert wait_until((tmp_path / "session-78.json").exists)
    assert json.loads((tmp_path / "session-78.json").read_text())["core"]["launches"] == 2000


@pytest.mark.parametrize("recorded", [False, True])
def test_the_last_events_are_counted_though_nobody_reads_the_commands(
    daemon: subprocess.Popen[str], runtime_dir: Path, tmp_path: Path, recorded: bool
) -> None:
    """The ring of commands is full when the program ends."""
    settings = {"DEEPUM_STATS_DIR": str(tmp_path)} | (
        {"DEEPUM_RECORD": str(tmp_path / "log")} if recorded else {}
    )
    program = FakeProgram(runtime_dir, settings, pid=80)
    program.device()
    for slot in range(6):
        program.allocate(slot, 16 << 20)
    for i in range(20000):
        program.execute(1000 + i % 6, i % 6, 8)
    program.close()
    assert wait_until((tmp_path / "session-80.json").exists)
    session = json.loads((tmp_path / "session-80.json").read_text())
    assert session["core"]["commands"] > COMMAND_RING // COMMAND_BYTES
    assert (session["core"]["launches"], session["warnings"]) == (20000, [])


def test_a_log_that_cannot_be_written_costs_no_command(
    daemon: subprocess.Popen[str], runtime_dir: Path, tmp_path: Path
) -> None:
    """The disk is full: the program gets what it gets without a log, and its daemon says so."""
    answered = []
    for pid, settings in ((81, {}), (82, {"DEEPUM_RECORD": "/dev/full"})):
        program = FakeProgram(runtime_dir, {"DEEPUM_STATS_DIR": str(tmp_path)} | settings, pid=pid)
        answered.append(program.train(20))
        program.close()
    assert answered[1] == answered[0]
    assert wait_until((tmp_path / "session-82.json").exists)
    session = json.loads((tmp_path / "session-82.json").read_text())
    assert session["warnings"] == ["the event log was given up: No space left on device"]
    assert session["core"]["launches"] == 120


def test_more_events_than_the_ring_holds_pass_through(
    daemon: subprocess.Popen[str], runtime_dir: Path, tmp_path: Path
) -> None:
    program = FakeProgram(
        runtime_dir, {"DEEPUM_STATS_DIR": str(tmp_path), "DEEPUM_POLICY": "on-demand"}, pid=79
    )
    program.device()
    program.allocate(0, 4 << 20)
    for _ in range(30):
        for i in range(5000):
            last = program.execute(i % 7, 0, 2)
        program.wait_decided(last)
    program.close()
    assert wait_until((tmp_path / "session-79.json").exists)
    session = json.loads((tmp_path / "session-79.json").read_text())
    assert (session["core"]["launches"], session["core"]["malformed_events"]) == (150000, 0)


def test_a_profile_makes_the_second_run_prefetch_in_its_first_round(
    daemon: subprocess.Popen[str], runtime_dir: Path, tmp_path: Path
) -> None:
    settings = {"DEEPUM_PROFILE": str(tmp_path / "profile"), "DEEPUM_STATS_DIR": str(tmp_path)}
    first = FakeProgram(runtime_dir, settings, pid=1)
    assert not first.ahead(first.train(6)[0])
    first.close()
    assert wait_until((tmp_path / "session-1.json").exists)
    second = FakeProgram(runtime_dir, settings, pid=2)
    assert second.ahead(second.train(1)[0])
    second.close()


def test_a_corrupt_profile_is_refused_in_one_line(
    daemon: subprocess.Popen[str], runtime_dir: Path, tmp_path: Path
) -> None:
    profile = tmp_path / "profile"
    profile.write_bytes(b"nonsense" * 100)
    with pytest.raises(RefusedError, match="not a profile") as refusal:
        FakeProgram(runtime_dir, {"DEEPUM_PROFILE": str(profile)})
    assert "\n" not in str(refusal.value)
    assert profile.read_bytes() == b"nonsense" * 100


def test_two_equal_runs_leave_identical_logs_and_a_replay_gives_the_same_commands(
    daemon: subprocess.Popen[str],
    runtime_dir: Path,
    tmp_path: Path,
    deepum: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    for number in (1, 2):
        program = FakeProgram(
            runtime_dir,
            {
                "DEEPUM_RECORD": str(tmp_path / f"log{number}"),
                "DEEPUM_STATS_DIR": str(tmp_path / "s"),
                "DEEPUM_SYNC": "1",
            },
        )
        program.train(5)
        program.close()
        assert wait_until(partial(_complete, tmp_path / f"log{number}"))
    assert (tmp_path / "log1").read_bytes() == (tmp_path / "log2").read_bytes()
    replayed = deepum("log", "replay", tmp_path / "log1")
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout.startswith("the same ")
    assert not replayed.stdout.startswith("the same 0 commands")
    shown = deepum("log", "show", tmp_path / "log1", "--commands")
    assert shown.returncode == 0, shown.stderr
    assert " execute " in shown.stdout and "-> prefetch" in shown.stdout


def _complete(log: Path) -> bool:
    return log.exists() and b'"commands_sha256": "' in log.read_bytes()


def test_a_changed_log_is_noticed(
    daemon: subprocess.Popen[str],
    runtime_dir: Path,
    tmp_path: Path,
    deepum: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    log = tmp_path / "log"
    program = FakeProgram(runtime_dir, {"DEEPUM_RECORD": str(log), "DEEPUM_LAUNCH_QUEUE": "0"})
    program.train(5)
    program.close()
    assert wait_until(lambda: _complete(log))
    data = log.read_bytes()
    log.write_bytes(data.replace(b'"prefetch_degree": 8192', b'"prefetch_degree": 1   '))
    assert deepum("log", "replay", log).returncode == 1
    log.write_bytes(data[:-64])
    cut = deepum("log", "replay", log)
    assert cut.returncode == 125 and "events are missing" in cut.stderr


@pytest.mark.parametrize(
    ("hello", "text"),
    [
        (b"", "closed"),
        (b"x", "not a whole message"),
        (struct.pack("<8sIIII", b"DEEPUMXX", 2, 0, 1, 0), "not one of deepum's"),
        (struct.pack("<8sIIII", b"DEEPUMHI", 99, 0, 1, 0), "version 99"),
        (struct.pack("<8sIIII", b"DEEPUMHI", 2, 4000, 1, 0), "cut off"),
        (struct.pack("<8sIIII", b"DEEPUMHI", 2, 0xFFFFFFFF, 1, 0), "cut off"),
    ],
)
def test_a_hostile_hello_is_refused_and_the_daemon_lives(
    daemon: subprocess.Popen[str], runtime_dir: Path, hello: bytes, text: str
) -> None:
    with pytest.raises((RefusedError, OSError), match=text if hello else None):
        FakeProgram(runtime_dir, hello=hello)
    program = FakeProgram(runtime_dir)
    program.train(1)
    program.close()


def test_a_hello_whose_descriptors_do_not_all_arrive_names_the_limit() -> None:
    """As where the daemon may open no more; here because they are more than it takes, which looks
    the same.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    read, write = os.pipe()
    os.set_blocking(read, False)
    with ours, theirs, os.fdopen(read, "rb", buffering=0) as end:
        with os.fdopen(write, "wb"):
            socket.send_fds(ours, [struct.pack("<8sIIII", b"DEEPUMHI", 2, 0, 1, 0)], [write] * 40)
            with pytest.raises(daemon_hello.RefusedError, match="ulimit -n"):
                daemon_hello.receive(theirs)
        assert end.read() == b"", "the pipe has ended: those that did arrive are closed"


@pytest.mark.parametrize("memory", ["unsealed", "foreign", "small", "not-memory"])
def test_a_hostile_ring_is_refused_and_the_daemon_lives(
    daemon: subprocess.Popen[str], runtime_dir: Path, memory: str, tmp_path: Path
) -> None:
    if memory == "unsealed":
        fd = shared_memory(seals=False)
    elif memory == "foreign":
        fd = shared_memory(magic=b"SOMETHIN")
    elif memory == "small":
        fd = os.memfd_create("small", os.MFD_ALLOW_SEALING)
    else:
        fd = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(RefusedError, match="hello: "):
        FakeProgram(runtime_dir, memory=fd)
    program = FakeProgram(runtime_dir)
    program.train(1)
    program.close()


def test_nonsense_in_the_ring_ends_that_session_only(
    daemon: subprocess.Popen[str], runtime_dir: Path, tmp_path: Path
) -> None:
    other = FakeProgram(runtime_dir)
    other.train(2)
    bad = FakeProgram(runtime_dir, {"DEEPUM_STATS_DIR": str(tmp_path)}, pid=5)
    bad.device()
    place = 4096 + bad.reserved
    struct.pack_into("<HBBI", bad.memory, place, 1, 6, 0, 0)
    os.eventfd_write(bad.daemon_fd, 1)
    assert wait_until(lambda: bad.daemon_left)
    assert wait_until((tmp_path / "session-5.json").exists)
    assert "refused" in json.loads((tmp_path / "session-5.json").read_text())["warnings"][0]
    other.train(2, set_up=False)
    other.close()
    bad.close()


def test_unusable_settings_are_refused_by_name(
    daemon: subprocess.Popen[str], runtime_dir: Path
) -> None:
    with pytest.raises(RefusedError, match="DEEPUM_PREFETCH_DEGREE: 'many' is not a whole number"):
        FakeProgram(runtime_dir, {"DEEPUM_PREFETCH_DEGREE": "many"})


def test_a_program_that_connects_and_says_nothing_blocks_nobody(
    daemon: subprocess.Popen[str], runtime_dir: Path
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
        silent.connect(str(socket_of(runtime_dir)))
        program = FakeProgram(runtime_dir)
        program.train(1)
        program.close()
