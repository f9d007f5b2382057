"""Traces of the trainings: an event log a model, beside the results' file in FILE.traces.zip. What
a model launches does not depend on the budget, so one will do; and it is what a run on a real card
leaves, without what the simulated driver knows of its kernels.
"""

from __future__ import annotations

import io
import lzma
import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acceptance.place import Place

if TYPE_CHECKING:
    from deepum.core import EventLog

_MOST_BYTES = 8 << 20  # of the file: results are kept in the repository


def keep(place: Place, model: str, budget: int) -> dict[str, Any]:
    """Puts the latest training's log aside. What is said of it: the budget in bytes that it was
    recorded with.
    """
    folder = Path(place.folder) / "traces"
    folder.mkdir(exist_ok=True)
    kept = folder / f"{model}.log"
    shutil.move(place.log, kept)
    return {"budget_bytes": budget, "bytes": kept.stat().st_size}


def beside(results: Path) -> Path:
    """Where the traces of that results' file are."""
    return results.with_suffix(".traces.zip")


def pack(folder: Path, results: Path) -> list[str]:
    """Those that were kept in the folder of a run go beside its results; the names of those for
    which there was no room.
    """
    left, size = [], 0
    with zipfile.ZipFile(beside(results), "w") as archive:
        for log in sorted((folder / "traces").glob("*.log")):
            packed = lzma.compress(log.read_bytes())
            size += len(packed)
            if size <= _MOST_BYTES:
                archive.writestr(f"{log.name}.xz", packed)
            else:
                size -= len(packed)
                left.append(log.stem)
    return left


def read(results: Path, model: str) -> EventLog:
    """Raises OSError, ValueError, KeyError for one that is not there."""
    from deepum.core import EventLog  # the native core, which may have to be built first

    try:
        with zipfile.ZipFile(beside(results)) as archive:
            return EventLog.read(io.BytesIO(lzma.decompress(archive.read(f"{model}.log.xz"))))
    except (zipfile.BadZipFile, lzma.LZMAError) as error:
        raise ValueError(f"{beside(results).name}: {error}") from None
