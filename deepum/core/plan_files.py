"""Plans as bytes that another process and another run understand: versioned, with a checksum, and
checked before use.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from array import array

from deepum.core.plan import Plan, PlannedKind, PlannedMove, PlanPoint

MAGIC = b"DEEPUMPL"
_VERSION = 2
_HEADER = struct.Struct("<8sIIII")  # magic, version, launches, moves, bytes of the outline
_MOVE = struct.Struct("<QIIIBBH")  # as `deepum_planned_move` (native/core/core.h)
_DIGEST_BYTES = hashlib.sha256().digest_size
MOST_LAUNCHES = 1 << 24
MOST_MOVES = 1 << 26
MOST_OUTLINE_BYTES = 1 << 26  # a longer one is left out


def encode(plan: Plan) -> bytes:
    """The plan, its checksum behind it."""
    outline = plan.outline if len(plan.outline) <= MOST_OUTLINE_BYTES else b""
    launches = array("Q", plan.launches)
    if sys.byteorder != "little":
        launches.byteswap()
    body = b"".join(
        (
            _HEADER.pack(MAGIC, _VERSION, len(plan.launches), len(plan.moves), len(outline)),
            launches.tobytes(),
            *(
                _MOVE.pack(m.name, m.launch, m.first, m.count, m.point, m.kind, 0)
                for m in plan.moves
            ),
            outline,
        )
    )
    return body + hashlib.sha256(body).digest()


def decode(data: bytes) -> Plan:
    """Raises ValueError where the bytes are no plan of this version, or damaged."""
    if len(data) < _HEADER.size + _DIGEST_BYTES or not data.startswith(MAGIC):
        raise ValueError("not a plan")
    _, version, launches, moves, outline = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise ValueError(f"a plan of version {version}, this is version {_VERSION}")
    moves_at = _HEADER.size + 8 * launches
    moves_end = moves_at + _MOVE.size * moves
    end = moves_end + outline
    small = launches <= MOST_LAUNCHES and moves <= MOST_MOVES and outline <= MOST_OUTLINE_BYTES
    if not small or len(data) != end + _DIGEST_BYTES:
        raise ValueError("a plan that was cut off")
    if hashlib.sha256(data[:end]).digest() != data[end:]:
        raise ValueError("a damaged plan: its checksum is wrong")
    hashes = array("Q", data[_HEADER.size : moves_at])
    if sys.byteorder != "little":
        hashes.byteswap()
    try:
        return Plan(
            tuple(hashes),
            tuple(
                PlannedMove(launch, PlanPoint(point), PlannedKind(kind), name, first, count)
                for name, launch, first, count, point, kind, _ in _MOVE.iter_unpack(
                    data[moves_at:moves_end]
                )
            ),
            data[moves_end:end],
        )
    except ValueError:
        raise ValueError("a plan with a move of no known kind or point") from None
