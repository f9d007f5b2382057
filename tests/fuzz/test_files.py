"""Event logs and profiles that were damaged on disk: a documented exit code and one line, whatever
is in them.
"""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from fake_program import FakeProgram, RefusedError
from running import wait_until

from deepum import cli

if TYPE_CHECKING:
    from conftest import Daemon

ONE_LINE = re.compile(r"deepum: error: [^\n]+; [^\n]+\n\Z")
HEAD = 16  # of a log


@pytest.fixture
def files(daemon: Daemon, runtime_dir: Path, tmp_path: Path) -> tuple[bytes, bytes]:
    """A real event log and a real profile, of one session."""
    settings = {
        name: str(tmp_path / name.lower())
        for name in ("DEEPUM_RECORD", "DEEPUM_PROFILE", "DEEPUM_STATS_DIR")
    }
    (tmp_path / "deepum_stats_dir").mkdir()
    program = FakeProgram(runtime_dir, settings, pid=7)
    program.train(4)
    program.close()
    assert wait_until((tmp_path / "deepum_stats_dir" / "session-7.json").exists)
    return (tmp_path / "deepum_record").read_bytes(), (tmp_path / "deepum_profile").read_bytes()


def damaged(random: Random, data: bytes, head: int) -> bytes:
    """Cut off, bytes changed, taken out or put in, parts doubled; the head more often than its
    share.
    """
    made = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 6))):
        at = (
            random.randrange(min(head, len(made)) if random.random() < 0.5 else len(made))
            if made
            else 0
        )
        how = random.randrange(6)
        if how == 0:
            del made[at:]
        elif how == 1 and made:
            made[at] = random.choice((0, 0xFF, ord("["), ord("9"), random.randrange(256)))
        elif how == 2:
            del made[at : at + random.randrange(1, 40)]
        elif how == 3:
            made[at:at] = random.randbytes(random.randrange(1, 40))
        elif how == 4:
            made[at:at] = made[at : at + random.randrange(1, 400)]
        else:
            made[at : at + 8] = random.choice(
                (b"\xff" * 8, bytes(8), struct.pack("<Q", 1 << random.randrange(64)))
            )
    return bytes(made)


def run_cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, str]:
    """The command line in this process: exit code and what went to standard error."""
    monkeypatch.setattr(sys, "argv", ["deepum", *map(str, arguments)])
    monkeypatch.setattr(os, "dup2", lambda *_: None)  # its standard output is the test's
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0), capsys.readouterr().err


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("command", [("show",), ("show", "--commands", "--json"), ("replay",)])
def test_a_damaged_log(
    files: tuple[bytes, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...],
    seed: int,
) -> None:
    random, log = Random(seed), files[0]
    text = log.index(b'"events_bytes"')
    codes: dict[int, int] = {}
    for _ in range(120):
        (tmp_path / "log").write_bytes(damaged(random, log, text))
        code, message = run_cli(monkeypatch, capsys, "log", *command, tmp_path / "log")
        codes[code] = codes.get(code, 0) + 1
        assert code in ((0, 1, 2, 125) if command == ("replay",) else (0, 2, 125))
        if code in (2, 125):
            assert ONE_LINE.match(message), message
    assert codes.get(2, 0) > 20, codes


def with_settings(log: bytes, settings: object) -> bytes:
    """The log with another header."""
    text = settings if isinstance(settings, bytes) else json.dumps(settings).encode()
    (old,) = struct.unpack_from("<I", log, 12)
    return log[:12] + struct.pack("<I", len(text)) + text + log[HEAD + old :]


BAD_SETTINGS: dict[str, Any] = {
    "no object": [],
    "nothing": {},
    "no numbers": {"settings": {"prefetch_degree": "many"}},
    "numbers beyond any": {"settings": {"prefetch_degree": 1 << 70}},
    "negative numbers": {"settings": {"prefetch_degree": -1}},
    "fractions": {"settings": {"prefetch_degree": 1.5}},
    "unknown ones": {"settings": {"speed": 1}},
    "a list of settings": {"settings": [1]},
    "nested without end": b"[" * 100_000,
    "numbers without end": b'{"settings": {"prefetch_degree": ' + b"9" * 5000 + b"}}",
    "no text": b"\xff\xfe\xfd",
    "a profile that is no text": {"settings": {}, "profile_sha256": [1]},
}


@pytest.mark.parametrize("what", BAD_SETTINGS)
def test_a_log_with_impossible_settings(
    files: tuple[bytes, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    what: str,
) -> None:
    (tmp_path / "log").write_bytes(with_settings(files[0], BAD_SETTINGS[what]))
    code, message = run_cli(monkeypatch, capsys, "log", "replay", tmp_path / "log")
    assert code in (2, 125) and ONE_LINE.match(message), (code, message)


def test_a_log_of_another_version(
    files: tuple[bytes, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "log").write_bytes(files[0][:8] + struct.pack("<I", 99) + files[0][12:])
    code, message = run_cli(monkeypatch, capsys, "log", "show", tmp_path / "log")
    assert code == 2 and "version 99" in message and ONE_LINE.match(message)


@pytest.mark.parametrize("seed", range(2))
def test_a_damaged_profile_stops_a_run_before_it_starts(
    files: tuple[bytes, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    seed: int,
) -> None:
    random, profile = Random(seed), files[1]
    refused = 0
    for _ in range(120):
        damage = damaged(random, profile, 24)
        if damage[:12] + damage[16:] == profile[:12] + profile[16:]:
            continue  # four bytes of the head mean nothing
        (tmp_path / "p").write_bytes(damage)
        code, message = run_cli(
            monkeypatch,
            capsys,
            "run",
            "--device",
            "sim",
            "--profile",
            tmp_path / "p",
            "--",
            "/nonexistent/program",
        )
        assert code == 2 and ONE_LINE.match(message) and "profile" in message, (code, message)
        assert (tmp_path / "p").read_bytes() == damage, "it is the person's to delete"
        refused += 1
    assert refused > 100


@pytest.mark.parametrize("make", ["fifo", "device", "folder"])
def test_a_profile_that_is_no_file_is_not_waited_for(
    deepum: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, make: str
) -> None:
    path = tmp_path / "p"
    makers: dict[str, Callable[[], None]] = {
        "fifo": lambda: os.mkfifo(path),
        "device": lambda: path.symlink_to("/dev/zero"),
        "folder": path.mkdir,
    }
    makers[make]()
    ran = deepum("run", "--device", "sim", "--profile", path, "--", "true", timeout=20)
    assert ran.returncode == 2 and ONE_LINE.match(ran.stderr), ran


def test_the_daemon_refuses_a_damaged_profile_to_the_program_and_goes_on(
    files: tuple[bytes, bytes], daemon: Daemon, tmp_path: Path
) -> None:

    random, before = Random(5), daemon.holding()
    for _ in range(60):
        damage = damaged(random, files[1], 24)
        if damage[:12] + damage[16:] != files[1][:12] + files[1][16:]:
            (tmp_path / "p").write_bytes(damage)
            with pytest.raises(RefusedError, match=r"^profile [^\n]*$"):
                FakeProgram(daemon.folder, {"DEEPUM_PROFILE": str(tmp_path / "p")})
    daemon.check(before)
