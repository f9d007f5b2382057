"""Reads a trace as storages and operations (deepum.recomputation.contents)."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from deepum._core import ffi, lib
from deepum.core import (
    UM_BLOCK_BYTES,
    Allocate,
    Block,
    BlockRange,
    Event,
    Execute,
    Free,
    events,
    events_of,
)
from deepum.recomputation.contents import (
    GiveBack,
    HandOut,
    Item,
    Operation,
    Other,
    Storage,
    Touch,
    Use,
    used,
)
from deepum.trace import Trace, following, work
from deepum.trace.work import Access, Work, access_of

_HEADER_BYTES: int = ffi.sizeof("deepum_event_header")
_SPARSE: int = lib.DEEPUM_EXECUTE_SPARSE
_EXECUTES = (work.LAUNCH, work.COPY)
# Of the program, beside allocations and launches; what is left out the replay finds anew, as for
# LMS (deepum.simulate.lms).
_KEPT = ("device", "capacity", "synchronise", "stream_destroyed")
_OF_PLACES = (work.DISCARD, lib.DEEPUM_WORK_PREFETCH, lib.DEEPUM_WORK_ADVISE)


def refusal(trace: Trace) -> str | None:
    """Why the program cannot be followed, None if it can be. Raises ValueError for a damaged
    trace.
    """
    if (reason := following.refusal(trace)) is not None:
        return reason
    steps = False
    launches = {event.sequence for event in events_of(trace.events, Execute)}
    for one in work.decode_without_accesses(trace.work):
        if one.kind in _EXECUTES:
            launches.discard(one.sequence)
        elif one.kind in _OF_PLACES:
            return "moves its memory itself"
        steps = steps or bool(one.flags & work.ENDS_STEP)
    if not steps:
        return "does not tell where its steps end"
    return "does not tell what its launches read and write" if launches else None


def others(trace: Trace) -> set[int]:
    """Slots of memory that is not PyTorch's."""
    slots = {(event.slot, event.generation) for event in events_of(trace.events, Allocate)}
    return {slot for slot, _ in slots - _of_pytorch(trace)}


def _of_pytorch(trace: Trace) -> set[tuple[int, int]]:
    """Slots and generations of its allocator."""
    return {(event.slot, event.generation) for event in events_of(trace.events, Block)}


@dataclass
class _Segment:
    """What lives in an allocation of PyTorch's, by offset; `offsets` has these in order."""

    blocks: dict[int, Storage] = field(default_factory=dict)
    offsets: list[int] = field(default_factory=list)

    def at(self, offset: int) -> tuple[int, Storage] | None:
        """The storage in which that byte lies, and where it begins."""
        index = bisect.bisect_right(self.offsets, offset) - 1
        if index < 0:
            return None
        start = self.offsets[index]
        storage = self.blocks[start]
        return (start, storage) if offset < start + storage.bytes else None


def items(trace: Trace, ns: Mapping[int, int]) -> Iterator[Item]:
    """In the order of the program, read as they are asked for; `ns`: of launches, by sequence,
    with all of their memory on the device. `refusal` has nothing against
    the trace. Raises ValueError where it is damaged.
    """
    return _Reader(trace, ns).items()


class _Reader:
    def __init__(self, trace: Trace, ns: Mapping[int, int]) -> None:
        self._trace = trace
        self._ns = ns
        self._of_pytorch = _of_pytorch(trace)
        self._segments: dict[int, _Segment] = {}
        self._handed_out = 0
        self._step = 0

    def items(self) -> Iterator[Item]:
        """All of them."""
        works = work.decode(self._trace.work)
        one = next(works, None)
        at, records = 0, self._trace.events
        for event in events(records):
            end = at + 8 * int.from_bytes(records[at : at + 2], "little")
            kind, body = records[at + 2], records[at + _HEADER_BYTES : end]
            at = end
            if not isinstance(event, Execute):
                yield from self._event(event, kind, body)
            while one is not None and one.sequence <= event.sequence:
                if isinstance(event, Execute) and one.kind in _EXECUTES:
                    yield self._operation(event, one)
                    self._step += bool(one.kind == work.LAUNCH and one.flags & work.ENDS_STEP)
                else:
                    yield one
                one = next(works, None)

    def _event(self, event: Event, kind: int, body: bytes) -> Iterator[Item]:
        if isinstance(event, Block):
            yield from self._block(event)
        elif isinstance(event, Allocate) and (event.slot, event.generation) in self._of_pytorch:
            self._segments.setdefault(event.slot, _Segment())
        elif isinstance(event, Free) and event.slot in self._segments:
            for storage in self._segments.pop(event.slot).blocks.values():
                yield GiveBack(storage)
        elif isinstance(event, (Allocate, Free)) or event.kind in _KEPT:
            yield Other(event, kind, body)

    def _block(self, event: Block) -> Iterator[Item]:
        segment = self._segments.get(event.slot)
        if segment is None:
            raise ValueError(f"{event.kind} event {event.sequence}: in no allocation")
        before = segment.blocks.pop(event.offset, None)
        if before is not None:
            del segment.offsets[bisect.bisect_left(segment.offsets, event.offset)]
            yield GiveBack(before)
        if event.kind == "block_active":
            self._handed_out += 1
            storage = Storage(self._handed_out, event.bytes, self._step)
            segment.blocks[event.offset] = storage
            bisect.insort(segment.offsets, event.offset)
            yield HandOut(storage)

    def _operation(self, event: Execute, one: Work) -> Operation:
        places: dict[Storage, int] = {}
        touches: list[list[Touch]] = []
        ranges: list[BlockRange] = []
        accesses: list[tuple[int | None, Access]] = []
        # Of the latest: a gather touches many rows of one storage, all alike.
        slot = low = high = place = latest_flags = -1
        reads = writes = False
        for access in one.accesses:
            its_slot, flags, offset, size = access
            if its_slot != slot or not low <= offset < high:
                segment = self._segments.get(its_slot)
                if segment is None:
                    accesses.append((None, access))
                    continue
                met = segment.at(offset)
                if met is None:
                    raise ValueError(
                        f"work of event {event.sequence}: touches memory that PyTorch has not "
                        f"handed out"
                    )
                (low, storage), slot = met, its_slot
                high = low + storage.bytes
                place = places.setdefault(storage, len(places))
                if place == len(touches):
                    touches.append([])
                    ranges.append(_blocks(slot, low, storage.bytes))
            if flags != latest_flags:
                (reads, writes), latest_flags = _uses(one, flags), flags
            start, size = offset - low, min(size, high - offset)
            touches[place].append((start, start + size, reads, writes))
            accesses.append((place, access_of((its_slot, flags, start, size))))
        uses = [used(storage, touches[at]) for storage, at in places.items()]
        in_event, others = self._in_event(event, uses, ranges)
        sparse = bool(event.flags & _SPARSE) and any(
            use.makes is not None and use.makes > 1 for use in uses
        )
        made = Operation(
            event,
            one,
            self._step,
            tuple(uses),
            tuple(accesses),
            in_event,
            others,
            self._ns.get(event.sequence, 0),
            one.kind == work.LAUNCH and not sparse,
        )
        for use in uses:
            if use.makes is not None:
                use.storage.makers.append(made)
            if use.reads is not None:
                use.storage.readers.append(made)
        return made

    def _in_event(
        self, event: Execute, uses: list[Use], ranges: list[BlockRange]
    ) -> tuple[tuple[int, ...], tuple[BlockRange, ...]]:
        """The storages that the event names, by place in `uses`, to which those are added of which
        nothing is touched; and the rest of its ranges.
        """
        if event.flags & lib.DEEPUM_EXECUTE_COPY:  # exact ranges, of what is touched
            return (), tuple(one for one in event.ranges if one.slot not in self._segments)
        named: dict[BlockRange, list[int]] = {}
        for at, where in enumerate(ranges):
            named.setdefault(where, []).append(at)
        places: list[int] = []
        others = []
        for one in event.ranges:
            segment = self._segments.get(one.slot)
            if segment is None:
                others.append(one)
                continue
            if one in named:
                places += named[one]
            else:
                places.append(len(uses))
                uses.append(Use(_named(segment, one, event), None, None))
        known = set(places)
        places += [at for at in range(len(ranges)) if at not in known]
        return tuple(places), tuple(others)


def _named(segment: _Segment, where: BlockRange, event: Execute) -> Storage:
    """The storage that lies in those UM blocks."""
    first = bisect.bisect_left(segment.offsets, where.first * UM_BLOCK_BYTES)
    for offset in segment.offsets[first:]:
        if _blocks(where.slot, offset, segment.blocks[offset].bytes) == where:
            return segment.blocks[offset]
    raise ValueError(
        f"execute event {event.sequence}: names memory that PyTorch has not handed out"
    )


def _blocks(slot: int, offset: int, size: int) -> BlockRange:
    first = offset // UM_BLOCK_BYTES
    return BlockRange(slot, first, (offset + size - 1) // UM_BLOCK_BYTES - first + 1)


def _uses(one: Work, flags: int) -> tuple[bool, bool]:
    """Whether a launch with such an access reads it, and writes it."""
    if one.kind == work.COPY:
        flags = work.WRITE if one.flags & work.TO_DEVICE else work.READ
    perhaps = bool(flags & work.PERHAPS)
    return (
        perhaps or (bool(flags & work.READ) and not flags & work.WRITTEN_FIRST),
        perhaps or bool(flags & work.WRITE),
    )
