"""The counters of a simulated GPU whose process ended without its exit handlers: `sim-PID.live`,
native/simgpu/cuda/live_figures.cpp.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

# magic, version, pid, rows, fields, current, reserved, machine.
_HEADER = struct.Struct("<8sIIIIII64s")
_NAME_BYTES = 32
_MOST_ROWS, _MOST_FIELDS = 65, 256


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("utf-8", errors="replace")


def read_live_figures(path: Path) -> dict[str, Any]:
    """As `sim-PID.json` would be, without what only an orderly end writes; `complete` is false.
    Raises OSError, ValueError.
    """
    data = path.read_bytes()
    if len(data) < _HEADER.size:
        raise ValueError("is cut off")
    magic, version, pid, rows, fields, current, _, machine = _HEADER.unpack_from(data)
    if (
        magic != b"DEEPUMLF"
        or version != 1
        or not 2 <= rows <= _MOST_ROWS
        or not 1 <= fields <= _MOST_FIELDS
        or current > 1
    ):
        raise ValueError("makes no sense")
    start, row = _HEADER.size + fields * _NAME_BYTES, struct.Struct(f"<{fields}d")
    if len(data) != start + 2 * rows * row.size:
        raise ValueError("is cut off")
    names = [_text(data[at : at + _NAME_BYTES]) for at in range(_HEADER.size, start, _NAME_BYTES)]
    counted = []
    for number in range(rows):
        values = row.unpack_from(data, start + (current * rows + number) * row.size)
        counted.append(
            {
                name: value if name.endswith("_s") else int(value)
                for name, value in zip(names, values, strict=True)
            }
        )
    lists: dict[str, list[Any]] = {
        "timeline": [],
        "not_simulated": [],
        "unparsed_kernels": [],
        "general_kernels": [],
    }
    return {
        "version": 1,
        "pid": pid,
        "machine": _text(machine),
        "complete": False,
        "device_count": rows - 1,
        **counted[0],
        "devices": counted[1:],
        **lists,
    }
