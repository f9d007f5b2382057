"""Captured traces, kept in the user's cache folder: the same request, by the same code and PyTorch,
is captured once.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from deepum.capture.record import MULTIPROCESSORS, capture
from deepum.core import EventLog
from deepum.paths import PACKAGE
from deepum.trace import Trace, work, work_path
from deepum.workloads import Request

_MOST_BYTES = 4 << 30  # the forty workloads with and without waits take more than one GiB
_CODE = ("capture", "workloads", "trace", "core")  # what a trace depends on


def folder(environment: Mapping[str, str]) -> Path:
    """$XDG_CACHE_HOME/deepum/traces, as the XDG Base Directory Specification has it."""
    given = environment.get("XDG_CACHE_HOME", "")
    return (
        (Path(given) if Path(given).is_absolute() else Path.home() / ".cache") / "deepum" / "traces"
    )


def _key(request: Request, steps: int, synchronise: bool, multiprocessors: int) -> str:
    try:
        pytorch = metadata.version("torch")
    except metadata.PackageNotFoundError:
        pytorch = ""
    digest = hashlib.sha256(f"{request} {steps} {synchronise} {multiprocessors} {pytorch}".encode())
    for source in sorted(path for part in _CODE for path in (PACKAGE / part).rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:32]


def captured(
    request: Request,
    steps: int,
    synchronise: bool = False,
    multiprocessors: int = MULTIPROCESSORS,
    within: Path | None = None,
) -> Trace:
    """The trace, from the cache (`within` that folder, else the user's) if it is there. Raises
    DeepumError and UsageError as `capture`.
    """
    place = (
        within or folder(os.environ)
    ) / f"{request.named.name}-{_key(request, steps, synchronise, multiprocessors)}"
    with contextlib.suppress(OSError, ValueError):
        found = Trace(
            str(request),
            bytes(EventLog.read(place).records),
            work.of_file(work_path(place).read_bytes()),
        )
        place.touch()
        return found
    trace = capture(request, steps, synchronise, multiprocessors).trace
    with contextlib.suppress(OSError):  # a cache that cannot be written is none
        _keep(trace, place)
    return trace


def _keep(trace: Trace, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    mine = place.with_name(f".{place.name}.{os.getpid()}")
    trace.save(mine)
    work_path(mine).replace(work_path(place))
    mine.replace(place)  # last: a log without its work would be another trace
    files = sorted(
        (path for path in place.parent.iterdir() if path.is_file()),
        key=lambda path: path.stat().st_mtime,
        reverse=True,
    )
    total = 0
    for path in files:
        total += path.stat().st_size
        if total > _MOST_BYTES and not path.name.startswith(place.name):
            path.unlink(missing_ok=True)
