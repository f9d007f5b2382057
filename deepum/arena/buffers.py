"""Buffers with lifetimes, and files of them in minimalloc's form: a CSV with the header
`id,lower,upper,size`, a column `alignment` where one is needed, and `offset` once it is known.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deepum.errors import UsageError

_REQUIRED = ("id", "lower", "upper", "size")
_KNOWN = (*_REQUIRED, "alignment", "offset")
_MOST = 1 << 62


@dataclass(frozen=True)
class Buffer:
    """`size` bytes that live in [begin, end), in any unit of time, from a multiple of `alignment`
    on.
    """

    name: str
    begin: int
    end: int
    size: int
    alignment: int = 1


def _columns(header: Sequence[str]) -> dict[str, int]:
    """Where each column is. Raises ValueError."""
    named = [cell.strip() for cell in header]
    for name in named:
        if name not in _KNOWN:
            raise ValueError(f"line 1: '{name}' is no column; write {','.join(_REQUIRED)}")
    for name in (*_REQUIRED, *named):
        if named.count(name) != 1:
            raise ValueError(f"line 1: has {named.count(name)} columns '{name}'; write one")
    return {name: number for number, name in enumerate(named)}


def _buffer(cells: Sequence[str], columns: dict[str, int]) -> Buffer:
    """Of a line. Raises ValueError."""
    if len(cells) != len(columns):
        raise ValueError(f"has {len(cells)} cells; write {len(columns)}, as the header has")

    def number(column: str, least: int) -> int:
        text = cells[columns[column]].strip()
        if not text.isascii() or not text.isdigit() or not least <= int(text) < _MOST:
            raise ValueError(f"{column} '{text}' is no whole number from {least} on, below 2^62")
        return int(text)

    alignment = number("alignment", 1) if "alignment" in columns else 1
    begin, end = number("lower", 0), number("upper", 0)
    if begin >= end:
        raise ValueError(f"lives from {begin} to {end}; upper has to be beyond lower")
    name = cells[columns["id"]].strip()
    return Buffer(name, begin, end, number("size", 0), alignment)


def parse(text: str) -> list[Buffer]:
    """The buffers of a file's text; offsets in it are left out. Raises ValueError, which names the
    line.
    """
    reader = csv.reader(io.StringIO(text))
    try:
        header = next(reader, None)
        if header is None:
            raise ValueError(f"is empty; write {','.join(_REQUIRED)}, then a line for each buffer")
        columns = _columns(header)
        found: dict[str, Buffer] = {}
        for cells in reader:
            if not cells:
                continue
            try:
                buffer = _buffer(cells, columns)
                if buffer.name in found:
                    raise ValueError(f"id '{buffer.name}' comes twice; give each its own")
            except ValueError as error:
                raise ValueError(f"line {reader.line_num}: {error}") from None
            found[buffer.name] = buffer
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from None
    return list(found.values())


def read(name: str) -> list[Buffer]:
    """Of the file of that name. Raises UsageError."""
    try:
        with Path(name).open(encoding="utf-8", newline="") as file:
            return parse(file.read())
    except OSError as error:
        raise UsageError(f"arena {name}: {error.strerror}; name a CSV file") from None
    except UnicodeDecodeError:
        raise UsageError(f"arena {name}: is no text; name a CSV file") from None
    except ValueError as error:
        raise UsageError(f"arena {name}: {error}; see docs/arena.md for the form") from None


def table(buffers: Sequence[Buffer], offsets: Sequence[int]) -> str:
    """The text of a file with offsets."""
    aligned = any(buffer.alignment != 1 for buffer in buffers)
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([*_REQUIRED, *(["alignment"] if aligned else []), "offset"])
    for one, offset in zip(buffers, offsets, strict=True):
        alignment = [one.alignment] if aligned else []
        rows.writerow([one.name, one.begin, one.end, one.size, *alignment, offset])
    return text.getvalue()
