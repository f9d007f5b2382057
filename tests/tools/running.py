"""Processes that tests run and watch, from whatever folder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepum.paths import daemon_files


@dataclass
class Ran:
    """A program that ended."""

    code: int
    out: str
    err: str

    def facts(self) -> dict[str, Any]:
        """What it told, a JSON object a line, all lines together."""
        assert self.code == 0, self.err
        document: dict[str, Any] = {}
        for line in self.out.splitlines():
            document.update(json.loads(line))
        return document


def wait_until(condition: Callable[[], object], seconds: float = 20) -> bool:
    """Polls until the condition holds; False when time is up."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def socket_of(folder: Path) -> Path:
    """The socket of the tested installation's daemon in a runtime folder."""
    return daemon_files(folder).socket


def lock_of(folder: Path) -> Path:
    """What that daemon holds locked."""
    return daemon_files(folder).lock


def holders(path: Path) -> list[int]:
    """Processes that have the file open."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and any(
                fd.readlink() == path for fd in (process / "fd").iterdir()
            ):
                found.append(int(process.name))
        except OSError:
            continue
    return found
