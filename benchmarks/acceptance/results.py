"""The results' file. Whatever is simulated says so, and cannot be where measurements are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from acceptance.place import ROOT

MEASURED = ROOT / "benchmarks" / "results"
SIMULATED = ROOT / "build" / "acceptance-simulated"


class ResultsError(Exception):
    """One line on why there is no such place for results."""


def folder_for(simulated: bool, wanted: Path | None) -> Path:
    """Where they go. Raises ResultsError."""
    folder = (wanted or (SIMULATED if simulated else MEASURED)).resolve()
    if simulated and (folder == MEASURED or MEASURED in folder.parents):
        raise ResultsError(f"{folder}: is for measurements; simulated results have to go elsewhere")
    return folder


class Results:
    """One run's file, written anew after each section. Raises ResultsError, OSError."""

    def __init__(self, folder: Path, name: str, head: dict[str, Any]) -> None:
        simulated = bool(head["simulated"])
        folder_for(simulated, folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{'simulated-' if simulated else ''}acceptance-{name}.json"
        self.content: dict[str, Any] = {"version": 1, **head, "sections": {}}

    def keep(self, section: str, content: dict[str, Any]) -> None:
        """What a section told, so far."""
        self.content["sections"][section] = content
        self._write()

    def read_again(self) -> None:
        """What another process wrote into it."""
        self.content = json.loads(self.path.read_text(encoding="utf-8"))

    def _write(self) -> None:
        unfinished = self.path.with_suffix(f".{os.getpid()}.part")
        unfinished.write_text(json.dumps(self.content, indent=1) + "\n", encoding="utf-8")
        unfinished.replace(self.path)
