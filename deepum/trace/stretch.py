"""A stretch of a trace that can be repeated: what was told between two points of it, without its
place.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_SEQUENCE = struct.Struct("<Q")
_SEQUENCE_AT = 8  # in event and work records alike


def _moved(record: bytes, by: int) -> bytes:
    (sequence,) = _SEQUENCE.unpack_from(record, _SEQUENCE_AT)
    return record[:_SEQUENCE_AT] + _SEQUENCE.pack(sequence + by) + record[_SEQUENCE_AT + 8 :]


def _records(events: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(events):
        end = at + 8 * int.from_bytes(events[at : at + 2], "little")
        yield events[at:end]
        at = end


@dataclass(frozen=True)
class Stretch:
    """Event and work records, their sequences counted from its start. Two that are equal tell the
    same.
    """

    events: bytes
    work: tuple[bytes, ...]

    @classmethod
    def cut(cls, events: bytes, work: list[bytes], start: int) -> Stretch:
        """Of records whose sequences are `start` too high."""
        return cls(
            b"".join(_moved(record, -start) for record in _records(events)),
            tuple(_moved(record, -start) for record in work),
        )

    def placed(self, start: int) -> tuple[bytes, list[bytes]]:
        """Its records, to stand at `start`."""
        return b"".join(_moved(record, start) for record in _records(self.events)), [
            _moved(record, start) for record in self.work
        ]
