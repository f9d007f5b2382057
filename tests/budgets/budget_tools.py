"""What these tests share."""

from __future__ import annotations

from pathlib import Path

from finished_run import MIB, SOFT, Ran

__all__ = ["HERE", "MIB", "SOFT", "Ran"]
HERE = Path(__file__).resolve().parent
