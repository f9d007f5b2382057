"""The shim as a program's own Python sees it."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from deepum.paths import SHIM


def is_disabled() -> bool:
    """Whether DEEPUM_DISABLE leaves the program to itself."""
    return os.environ.get("DEEPUM_DISABLE", "0") not in ("", "0")


@cache
def is_loaded() -> bool:
    """Whether it is in this process: it is preloaded, or never comes."""
    return SHIM.name in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
