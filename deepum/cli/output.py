"""What commands print and write: tables for people, and files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deepum.errors import DeepumError


def aligned(rows: Sequence[Sequence[str]], least_first: int = 0) -> list[str]:
    """A line each, indented: the first column, of `least_first` characters at least, to the left,
    all others to the right.
    """
    first, *widths = (max(len(row[i]) for row in rows) for i in range(len(rows[0])))
    return [
        f"  {row[0]:<{max(first, least_first)}}"
        + "".join(f"{cell:>{width + 2}}" for cell, width in zip(row[1:], widths, strict=True))
        for row in rows
    ]


def write(name: str, data: bytes) -> None:
    """To the file of that name. Raises DeepumError."""
    try:
        Path(name).write_bytes(data)
    except OSError as error:
        raise DeepumError(f"{name}: {error.strerror}; name a file that can be written") from None


def write_json(name: str, document: dict[str, Any]) -> None:
    """The same of a JSON document."""
    write(name, (json.dumps(document, indent=1) + "\n").encode())
