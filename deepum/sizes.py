"""Sizes as people write them."""

from __future__ import annotations

import re

_UNITS = {"": 1, "B": 1} | {
    letter + suffix: 1024**power
    for power, letter in enumerate("KMGT", start=1)
    for suffix in ("", "iB", "B")
}  # as the CUDA world counts: 8G and 8GB are 8 GiB
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")


def parse_size(text: str) -> int:
    """Bytes of `8GiB`, `8G`, `512MiB`, `1.5g` or `4096`. Raises ValueError with the cause."""
    match = _SIZE.fullmatch(text.strip())
    unit = next(
        (factor for name, factor in _UNITS.items() if match and name.lower() == match[2].lower()),
        None,
    )
    if match is None or unit is None:
        raise ValueError(f"'{text}' is not a size; write one like 8GiB or 512MiB")
    size = int(float(match[1]) * unit) if "." in match[1] else int(match[1]) * unit
    if size >= 1 << 63:
        raise ValueError(f"'{text}' is too large; write a size below 8388608TiB")
    return size


def format_size(size: int) -> str:
    """Shortest exact text of a size that `parse_size` understands."""
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size and size % 1024**power == 0:
            return f"{size // 1024**power}{unit}"
    return str(size)


def size(count: float | None) -> str:
    """A number of bytes for people."""
    if count is None:
        return "?"
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count >= 1024**power:
            return f"{count / 1024**power:.1f} {unit}"
    return f"{count:.0f} B"
