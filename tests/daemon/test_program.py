"""What the daemon knows of a program, and what it may do to it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from running import wait_until

from deepum.daemon import program
from deepum.daemon.program import ServedProgram


def test_a_process_that_the_kernel_does_not_name_is_not_signalled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    signalled: list[int] = []
    monkeypatch.setattr(os, "pidfd_open", lambda pid: signalled.append(pid))
    served = ServedProgram.of(0, os.getpid(), {})
    assert (served.pid, served.command_line) == (os.getpid(), "?")
    assert not served.terminate()
    assert signalled == []


def test_a_process_that_is_gone_is_told_so() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert not ServedProgram.of(ended.pid, ended.pid, {}).terminate()


def test_a_command_line_is_one_line_without_control_characters() -> None:
    code = "import time; time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, "a\nb\x1b[2J", "x" * 2000]) as process:
        assert wait_until(Path(f"/proc/{process.pid}/cmdline").read_bytes)
        line = ServedProgram.of(process.pid, process.pid, {}).command_line
        process.kill()
    assert line.endswith("x") and len(line) == program._MOST_CHARACTERS
    assert "a?b?[2J" in line and line.isprintable()


def test_figures_of_the_latest_image_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sim-7.live", "sim-7-2.live", "sim-7-10.live", "sim-77.live", "sim-7-10.json"):
        (tmp_path / name).touch()
    read: list[str] = []

    def figures(path: Path) -> dict[str, object]:
        read.append(path.name)
        return {"faults": 1, "machine": "v100"}

    monkeypatch.setattr(program, "read_live_figures", figures)
    environment = {"DEEPUM_STATS_DIR": str(tmp_path), "DEEPUM_SIM_MACHINE": "v100"}
    assert ServedProgram.of(0, 7, environment).simulated() == {"faults": 1}
    assert read == ["sim-7-10.live"]
    assert ServedProgram.of(0, 7, {"DEEPUM_STATS_DIR": str(tmp_path)}).simulated() == {}
