"""The marks of sessions that the launcher waits for."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from deepum.statistics.collect import wait_for_sessions


def ended() -> int:
    """A process that is no more."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def never(_: float) -> bool:
    return False


def mark(folder: Path, pid: int, daemon: int) -> None:
    (folder / f"session-{pid}.open").write_text(json.dumps({"pid": pid, "daemon": daemon}))


def test_a_session_that_closes_between_listing_and_reading_is_not_missing(tmp_path: Path) -> None:
    """Its mark is listed, and cannot be read any more."""
    (tmp_path / "session-5.open").symlink_to(tmp_path / "gone")
    assert wait_for_sessions(tmp_path, never) == []


def test_a_mark_that_is_being_written_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "session-5.open").write_text("")
    naps = []

    def nap(_: float) -> bool:
        naps.append(1)
        (tmp_path / "session-5.open").unlink(missing_ok=True)
        return False

    assert wait_for_sessions(tmp_path, nap) == []
    assert naps


def test_sessions_whose_daemon_is_gone_or_whose_program_runs_on_are_named(tmp_path: Path) -> None:
    gone = ended()
    mark(tmp_path, gone, gone)
    mark(tmp_path, os.getpid(), os.getpid())
    assert sorted(wait_for_sessions(tmp_path, never)) == sorted(
        [
            f"process {os.getpid()} is still running; its figures are left out",
            f"the daemon ended before it reported on process {gone}; its figures are left out",
        ]
    )
