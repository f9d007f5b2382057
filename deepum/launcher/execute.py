"""Runs a program that has been planned, collects what its sessions report, and tells of it."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepum.device import DEFAULT_MACHINE
from deepum.errors import DeepumError
from deepum.launcher import child
from deepum.launcher.launch import Plan
from deepum.sizes import format_size
from deepum.statistics import collect
from deepum.statistics import run as statistics
from deepum.statistics.summary import places, summary


def say(text: str) -> None:
    """One line of ours on standard error."""
    with contextlib.suppress(OSError, ValueError):
        print(f"deepum: {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Ran:
    """A program that has ended: its wait status, its statistics, and whether somebody asked us to
    end meanwhile.
    """

    status: int
    report: dict[str, Any]
    end_requested: bool


def run(planned: Plan, remarks: bool = True) -> Ran:
    """Runs the program. `remarks`: what has to be said before is said. Raises DeepumError."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="deepum-run-"))
    except OSError as error:
        raise DeepumError(
            f"temporary folder: {error.strerror}; set TMPDIR to a folder that can be written"
        ) from None
    try:
        planned.environment["DEEPUM_STATS_DIR"] = str(folder)
        if planned.values["record"] is not None:
            # Of an earlier run: it would be taken for this one's.
            Path(f"{planned.values['record']}.work").unlink(missing_ok=True)
        for remark in planned.remarks if remarks else []:
            say(remark)
        started = time.monotonic()
        running = child.Child(planned.program, planned.arguments, planned.environment)
        try:
            if remarks and planned.device.name.startswith("sim:"):
                say(
                    f"{planned.device.name} is simulated: time is virtual, kernels compute "
                    f"nothing, results read as zeros"
                )
            status = running.wait()
            elapsed = time.monotonic() - started
            warnings = collect.wait_for_sessions(folder, running.interrupted)
        finally:
            running.close()
        how = child.how_it_ended(status)
        reports = collect.read_sessions(folder, {running.pid: how})
        cards = [gpu.memory_bytes for gpu in planned.device.gpus]
        report = statistics.merge(
            reports, planned.device.name, planned.values, warnings, cards, how, elapsed
        )
        return Ran(status, report, running.end_requested)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def execute(planned: Plan) -> int:
    """Runs the program and reports; returns its exit code, or ends by the signal that ended it.
    Raises DeepumError.
    """
    quiet = planned.values["log"] == 0
    ran = run(planned, not quiet)
    if planned.values["stats"] is not None:
        try:
            collect.write_json(Path(str(planned.values["stats"])), ran.report)
        except OSError as error:
            say(f"error: {planned.values['stats']}: {error.strerror}; the statistics are lost")
    if not quiet:
        pointer = places(ran.report, _drawn(planned), can_watch())
        for line in [*summary(ran.report), *pointer]:
            say(line)
    return child.end_like(ran.status)


def _drawn(planned: Plan) -> list[str]:
    """The arguments of `deepum report` for what the run has written: a recorded run is replayed
    there, on the same machine.
    """
    values = planned.values
    files = [
        shown(str(values[name]))
        for name in ("stats", "record")
        if values[name] is not None and Path(str(values[name])).is_file()
    ]
    if not files or values["record"] is None:
        return files
    if (machine := planned.device.machine) not in (None, DEFAULT_MACHINE):
        files += ["--machine", str(machine)]
    if values["gpu_memory"] is not None and "," not in (memory := str(values["gpu_memory"])):
        files += ["--gpu-memory", format_size(int(memory))]
    return files


def shown(path: str) -> str:
    """A path as short as it can be written here."""
    with contextlib.suppress(OSError):
        here = os.path.relpath(path)
        if not here.startswith(".."):
            return here
    return path


def can_watch() -> bool:
    """Whether this installation has `deepum top`."""
    return importlib.util.find_spec("deepum.cli.top") is not None
