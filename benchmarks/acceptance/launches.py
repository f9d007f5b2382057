"""What launches do, as far as an event log tells: work (native/um_model/work_records.h) for a run
on a real card, of which there is none.

Events name whole UM blocks. Of these a launch uses what PyTorch had handed out of them; all of it,
but for gathers and scatters. How long a kernel takes follows from its bytes alone: what it
calculates no event tells. acceptance.prediction makes all kernels of a model longer or shorter
alike.

A gather or scatter uses rows of its table, spread evenly, as many as go into or come out of its
other memory. That lies in UM blocks with other tensors: it is taken for what was handed out of them
last, as the result of an operator is.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from deepum._core import lib

from deepum.core import UM_BLOCK_BYTES, Allocate, Block, BlockRange, Event, Execute, Free
from deepum.trace import work

_REGION = 1 << 16  # in which content moves on demand
_ROW = 256  # bytes, at least
_STREAMS = 0x8000_0000  # numbers of streams that only events name, native/simulate/replay.hpp
_COPY, _MEMSET = int(lib.DEEPUM_EXECUTE_COPY), int(lib.DEEPUM_EXECUTE_MEMSET)
_GRAPH, _SPARSE = int(lib.DEEPUM_EXECUTE_GRAPH), int(lib.DEEPUM_EXECUTE_SPARSE)


@dataclass
class _Allocation:
    """Bytes, and which of them PyTorch has handed out: where blocks begin, in order, and where each
    ends.
    """

    bytes: int
    first_offset: int
    reported: bool = False
    begins: list[int] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)  # the last handed out is the last here

    def take(self, block: Block) -> None:
        self.reported = True
        if self.ends.pop(block.offset, None) is None:
            bisect.insort(self.begins, block.offset)
        self.ends[block.offset] = block.offset + block.bytes

    def give_back(self, block: Block) -> None:
        if self.ends.pop(block.offset, None) is not None:
            del self.begins[bisect.bisect_left(self.begins, block.offset)]

    def used(self, blocks: BlockRange) -> Iterator[tuple[int, int]]:
        """Where what is handed out of these UM blocks begins and ends."""
        low = max(blocks.first * UM_BLOCK_BYTES - self.first_offset, 0)
        high = min((blocks.first + blocks.count) * UM_BLOCK_BYTES - self.first_offset, self.bytes)
        if not self.reported:
            yield low, high
            return
        for begin in self.begins[max(bisect.bisect_right(self.begins, low) - 1, 0) :]:
            if begin >= high:
                return
            if self.ends[begin] > low:
                yield max(begin, low), min(self.ends[begin], high)

    def latest(self, blocks: BlockRange) -> tuple[int, int]:
        """Of what is handed out of these UM blocks, what was last."""
        places = list(self.used(blocks))
        if not self.reported or len(places) < 2:
            return places[0] if places else (0, 0)
        inside = {
            self.begins[bisect.bisect_right(self.begins, low) - 1]: (low, high)
            for low, high in places
        }
        return next(inside[begin] for begin in reversed(self.ends) if begin in inside)


def work_of(events: Iterable[Event]) -> bytes:
    """Work for the launches, memsets and copies among the events."""
    allocations: dict[int, _Allocation] = {}
    made = []
    for event in events:
        if isinstance(event, Allocate):
            known = allocations.get(event.slot)
            if known is None or known.bytes != event.bytes:  # else announced once more
                allocations[event.slot] = _Allocation(event.bytes, event.first_offset)
        elif isinstance(event, Free):
            allocations.pop(event.slot, None)
        elif isinstance(event, Block) and event.slot in allocations:
            change = _Allocation.take if event.kind == "block_active" else _Allocation.give_back
            change(allocations[event.slot], event)
        elif (
            isinstance(event, Execute) and not event.flags & _GRAPH
        ):  # of a graph nobody knows how many launches it is
            made.append(_work(event, allocations).encode())
    return b"".join(made)


def _work(event: Execute, allocations: dict[int, _Allocation]) -> work.Work:
    ranges = [
        (blocks, flags | int(lib.DEEPUM_WORK_ESTIMATED))
        for group, flags in (
            (event.written, work.WRITE),
            (event.read, work.READ),
            (event.unknown, work.READ | work.WRITE),
        )
        for blocks in group
        if blocks.slot in allocations
    ]
    if event.flags & _SPARSE:
        accesses = _gathered(ranges, allocations)
    else:
        accesses = [
            work.Access(blocks.slot, flags, low, high - low)
            for blocks, flags in ranges
            for low, high in allocations[blocks.slot].used(blocks)
        ]
    kind, flags, size = work.LAUNCH, 0, 0
    if event.flags & _COPY:
        if bool(event.read) != bool(event.written) and not event.flags & _MEMSET:
            kind, flags, size = (
                work.COPY,
                work.TO_DEVICE if event.written else 0,
                sum(access.bytes for access in accesses),
            )
        else:
            flags = work.UNCOUNTED
    return work.Work(
        kind,
        event.sequence,
        flags,
        _STREAMS + event.stream,
        device_bytes=size,
        accesses=tuple(accesses),
    )


def _gathered(
    ranges: list[tuple[BlockRange, int]], allocations: dict[int, _Allocation]
) -> list[work.Access]:
    latest = [
        (blocks.slot, flags, *allocations[blocks.slot].latest(blocks)) for blocks, flags in ranges
    ]
    accesses = [work.Access(slot, flags, low, high - low) for slot, flags, low, high in latest]
    if len(accesses) < 2:
        return accesses
    table = max(accesses, key=lambda access: access.bytes)
    others = [access for access in accesses if access is not table]
    rows = min(table.bytes, sum(access.bytes for access in others))
    count = max(1, min(rows // _ROW, table.bytes // _REGION))
    step, size = table.bytes // count, max(1, rows // count)
    return [
        *others,
        *(
            work.Access(table.slot, table.flags, table.offset + i * step, size)
            for i in range(count)
        ),
    ]
