"""A trace's events where PyTorch's operators declare what their launches only read
(docs/declared-reads.md): of each launch the ranges that no access of it writes are read ranges. The
shim leaves them among the unknown ones and marks them, which is the same to the core, but for the
order of a launch's ranges.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from deepum._core import ffi, lib
from deepum.core import UM_BLOCK_BYTES, BlockRange
from deepum.trace import work
from deepum.trace.trace import Trace

_EXECUTE_BYTES = int(ffi.sizeof("deepum_execute_event"))
_COUNTS = struct.Struct("<HHH")  # of written, read and unknown ranges
_COUNTS_AT = int(ffi.offsetof("deepum_execute_event", "write_ranges"))
_WRITES = work.WRITE | work.PERHAPS
_Span = tuple[int, int, int]  # slot, first block and the block behind the last


def declared(trace: Trace) -> Trace:
    """The same launches, in each with unknown ranges that are only read as read ranges. The edge
    blocks of a range of three or more may be shared with another tensor, and do not count.
    """
    written = _written(trace)
    records = bytearray(trace.events)
    header = ffi.typeof("deepum_event_header *")
    base = ffi.from_buffer("uint8_t[]", records)
    at = 0
    while at < len(records):
        event = ffi.cast(header, base + at)
        is_kernel = not event.flags & lib.DEEPUM_EXECUTE_GRAPH
        if event.kind == lib.DEEPUM_EVENT_EXECUTE and is_kernel and event.sequence in written:
            _declare(records, at, written[event.sequence])
        at += int(event.words) * 8
    return replace(trace, events=bytes(records))


def _written(trace: Trace) -> dict[int, list[_Span]]:
    """What each launch may write, by its event's sequence."""
    found: dict[int, list[_Span]] = defaultdict(list)
    for record in work.decode(trace.work):
        if record.kind == work.LAUNCH:
            found[record.sequence].extend(
                (
                    one.slot,
                    one.offset // UM_BLOCK_BYTES,
                    -(-(one.offset + one.bytes) // UM_BLOCK_BYTES),
                )
                for one in record.accesses
                if one.flags & _WRITES
            )
    return found


def _declare(records: bytearray, at: int, written: Sequence[_Span]) -> None:
    writes, reads, unknown = _COUNTS.unpack_from(records, at + _COUNTS_AT)
    start = at + _EXECUTE_BYTES + 8 * (writes + reads)
    ranges = struct.unpack_from(f"<{unknown}Q", records, start)
    only_read = [one for one in ranges if not _is_written(BlockRange.decode(one), written)]
    if only_read:
        rest = [one for one in ranges if one not in only_read]
        struct.pack_into(f"<{unknown}Q", records, start, *only_read, *rest)
        _COUNTS.pack_into(records, at + _COUNTS_AT, writes, reads + len(only_read), len(rest))


def _is_written(where: BlockRange, written: Sequence[_Span]) -> bool:
    edge = 1 if where.count > 2 else 0
    first, end = where.first + edge, where.first + where.count - edge
    return any(slot == where.slot and low < end and first < high for slot, low, high in written)
