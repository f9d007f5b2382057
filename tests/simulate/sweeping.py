"""Tasks for sweeps, in a module that workers can import."""

from __future__ import annotations

import os
import time
from pathlib import Path

from deepum.errors import UsageError


def half(number: int) -> tuple[int, int]:
    """Of an even number, and the process that halved it."""
    if number == 13:
        raise ZeroDivisionError("nobody\nexpected that")
    if number % 2:
        raise UsageError(f"{number}: is odd; give an even number")
    return number // 2, os.getpid()


def after_the_second(folder: Path, names: tuple[str, str]) -> str:
    """The first ends only when the second has ended: results come in another order than points."""
    (folder / names[0]).touch()
    while names[1] and not (folder / names[1]).exists():
        time.sleep(0.01)
    return names[0]


def ends(number: int) -> int:
    """The worker with it, for 0."""
    if number == 0:
        os._exit(3)
    return number
