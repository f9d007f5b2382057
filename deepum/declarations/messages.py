"""What is said on standard error, in a program of somebody else's."""

from __future__ import annotations

import os
import sys

_OUT = "operators do not declare what they only read"


def warn(error: Exception) -> None:
    """That something went wrong, with `DEEPUM_LOG` of 1, the default, or more."""
    if _log_level() >= 1:
        _say(f"warning: {_OUT}: {type(error).__name__}: {error}")


def inform(why: str) -> None:
    """Why nothing is declared, with `DEEPUM_LOG` of 2 or more."""
    if _log_level() >= 2:
        _say(f"{_OUT}: {why}")


def _say(text: str) -> None:
    print(f"deepum: {' '.join(text.split())}", file=sys.stderr, flush=True)


def _log_level() -> int:
    given = os.environ.get("DEEPUM_LOG", "1")
    return int(given) if given.isdecimal() else 1
