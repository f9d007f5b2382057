"""The files by which sessions and simulated GPUs report to the launcher (docs/architecture.md,
Statistics).
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deepum.statistics.live_figures import read_live_figures
from deepum.statistics.processes import alive

_MOST_SECONDS = 30.0  # that a daemon may take to close the sessions of processes that have ended
_STEP_SECONDS = 0.02
_LIVE = (
    "the simulated GPU's figures are those at its last call; what was queued then is not counted, "
    "and there is no timeline"
)


@dataclass
class Reports:
    """What the processes of a run left: one object a session, one a simulated driver, one a
    process under --remat.
    """

    sessions: list[dict[str, Any]] = field(default_factory=list)
    simulators: list[dict[str, Any]] = field(default_factory=list)
    remat: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def wait_for_sessions(folder: Path, interrupted: Callable[[float], bool]) -> list[str]:
    """Returns when every session of a process that has ended is closed. The answer names those
    whose figures are missing.
    """
    waited = 0.0
    while True:
        missing, closing = [], False
        for mark in sorted(folder.glob("*.open")):
            owner = _owner(mark)
            if owner is None:
                continue
            pid, daemon = owner
            if alive(pid):
                missing.append(f"process {pid} is still running; its figures are left out")
            elif not alive(daemon):
                missing.append(
                    f"the daemon ended before it reported on process {pid}; its figures are "
                    f"left out"
                )
            else:
                missing.append(
                    f"the daemon has not yet reported on process {pid}; its figures are left out"
                )
                closing = True
        if not closing or waited >= _MOST_SECONDS or interrupted(_STEP_SECONDS):
            return missing
        waited += _STEP_SECONDS


def _owner(mark: Path) -> tuple[int, int] | None:
    """The processes (program's, daemon's) that a session's mark names. None: the mark is gone,
    since the session was closed just now.
    """
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        fields = json.loads(mark.read_text(encoding="utf-8"))
        return int(fields["pid"]), int(fields["daemon"])
    # Being written just now: this process is alive, so that it is read again.
    return (0, os.getpid()) if mark.exists() else None


def read_sessions(folder: Path, ends: Mapping[int, str] | None = None) -> Reports:
    """All reports of a run's folder. `ends`: of processes that are known to have ended, how."""
    reports = Reports()
    for kind, into in (
        ("session", reports.sessions),
        ("sim", reports.simulators),
        ("remat", reports.remat),
    ):
        for path in sorted(folder.glob(f"{kind}-*.json"), key=_by_number):
            _read(path, _object, into, reports.warnings)
    last = {
        _by_number(path)[0]: path.stem for path in sorted(folder.glob("sim-*.*"), key=_by_number)
    }
    for path in sorted(folder.glob("sim-*.live"), key=_by_number):
        # It ended between writing the one and taking the other away.
        if path.with_suffix(".json").exists():
            continue
        if (
            figures := _read(path, read_live_figures, reports.simulators, reports.warnings)
        ) is not None:
            how = f"{(ends or {}).get(figures['pid'], 'ended')} without its exit handlers"
            if last[_by_number(path)[0]] != path.stem:
                how = "replaced itself by exec"
            elif alive(figures["pid"]):
                how = "is still running"
            reports.warnings.append(f"process {figures['pid']} {how}: {_LIVE}")
    return reports


def _by_number(path: Path) -> list[int]:
    """A process's images in their order: `sim-7`, `sim-7-2`, ... `sim-7-10`."""
    return [int(part) for part in path.stem.split("-")[1:] if part.isdigit()] or [0]


def _object(path: Path) -> dict[str, Any]:
    document = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(document, dict):
        raise ValueError("no object")
    return document


def _read(
    path: Path,
    reader: Callable[[Path], dict[str, Any]],
    into: list[dict[str, Any]],
    warnings: list[str],
) -> dict[str, Any] | None:
    try:
        figures = reader(path)
    except (OSError, ValueError) as error:
        warnings.append(f"{path.name}: {error}; its figures are left out")
        return None
    into.append(figures)
    return figures


def write_json(path: Path, value: object) -> None:
    """Writes the whole file or nothing of it. Raises OSError."""
    text = json.dumps(value, indent=2) + "\n"
    if path.exists() and not path.is_file():  # /dev/stdout, a pipe: no renaming over it
        path.write_text(text, encoding="utf-8")
        return
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
