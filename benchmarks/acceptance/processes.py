"""Processes with a time limit: what hangs is ended with all that it started, and said."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ran:
    """`code` is None for one that was cut off."""

    code: int | None
    out: str
    err: str
    seconds: float

    @property
    def trouble(self) -> str | None:
        """None if it went well; else one line."""
        if self.code == 0:
            return None
        if self.code is None:
            return f"was cut off after {self.seconds:.0f} s"
        last = next(
            (line for line in reversed((self.err or self.out).splitlines()) if line.strip()),
            "no message",
        )
        return f"ended with {self.code}: {last.strip()[:300]}"


def run(
    command: Sequence[str | Path],
    environment: Mapping[str, str],
    seconds: float,
    cwd: Path | None = None,
) -> Ran:
    """Runs it to its end or that of its time. Output goes through files, so that what it leaves
    running holds nobody up.
    """
    begin = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [str(part) for part in command],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=cwd,
            start_new_session=True,
        )
        code: int | None = None
        try:
            code = process.wait(max(0.1, seconds))
        except subprocess.TimeoutExpired:
            end_group(process)
        except BaseException:  # we are to end ourselves
            end_group(process)
            raise
        out.seek(0)
        err.seek(0)
        return Ran(
            code,
            out.read().decode(errors="replace"),
            err.read().decode(errors="replace"),
            time.monotonic() - begin,
        )


def end_group(process: subprocess.Popen[bytes]) -> None:
    """The process and those that it started: asked, then made to. What the driver holds in the
    kernel is not waited for.
    """
    for number, patience in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            if number == signal.SIGKILL:
                return
