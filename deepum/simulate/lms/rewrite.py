"""The trace of a program, as it would be under LMS.

The program's own part stays as it is: launches, copies, events, waits, in their order. Its memory
is PyTorch's blocks, each of them a tensor, which get places anew; a launch is an operation that
takes the tensors it touches. What is allocated between two launches belongs to the operation of the
second, which has pinned by then what it takes: so do LMS's guards, which stand at the beginning of
an operator.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from deepum._core import ffi, lib
from deepum.core import Allocate, Block, Event, Execute, Free, events, events_of
from deepum.simulate.lms.assumed import Assumed, assumed
from deepum.simulate.lms.copies import Copies
from deepum.simulate.lms.swapper import OutOfMemoryError, Swapper, SwapStatistics, Tensor
from deepum.sizes import size
from deepum.trace import Trace, following, work
from deepum.trace.work import BY_ADDRESS, READ, WRITE, Access, Work

_OPERATIONS = (work.LAUNCH, work.COPY)
_ESTIMATED: int = lib.DEEPUM_WORK_ESTIMATED
_KEPT = ("device", "capacity", "execute", "synchronise", "stream_destroyed")
_EXECUTE_BYTES: int = ffi.sizeof("deepum_execute_event")
_RANGES_AT = 28  # of the counts of ranges in `deepum_execute_event`
_OF_PROGRAM: int = lib.DEEPUM_ALLOCATION_OF_PROGRAM

_Item = tuple[Event, bytes] | Work


@dataclass(frozen=True)
class Swapped:
    """`trace`: None where memory ran out: then `out_of_memory` says so, after `launches` launches
    and copies and `steps` whole steps, if the trace tells of steps.
    """

    trace: Trace | None
    statistics: SwapStatistics
    launches: int
    steps: int | None
    out_of_memory: OutOfMemoryError | None = None

    @property
    def cause(self) -> str:
        """Of what ran out of memory, for people."""
        if self.out_of_memory is None:
            return "nothing"
        found = self.out_of_memory
        step = "" if self.steps is None else f"in step {self.steps + 1}, "
        return (
            f"out of memory {step}after {self.launches} launches: {size(found.request)} asked for, "
            f"{size(found.allocated)} of {size(found.memory)} in use"
        )


def refusal(trace: Trace) -> str | None:
    """Why the program cannot be followed under LMS, None if it can be. Raises ValueError for a
    damaged trace.
    """
    if any(event.flags & _OF_PROGRAM for event in events_of(trace.events, Allocate)):
        return "has managed memory of its own"
    if (reason := following.refusal(trace)) is not None:
        return reason
    streams = {
        one.stream for one in work.decode(trace.work) if one.kind in _OPERATIONS and one.accesses
    }
    return "puts work on several streams" if len(streams) > 1 else None


def rewrite(trace: Trace, memory: int, empty_cache_every: int | None = None) -> Swapped:
    """`memory`: of the card, bytes. `empty_cache_every`: launches after which the cache is given
    back to the driver, again and again.

    Raises ValueError for a damaged trace; `refusal` has nothing against it.
    """
    made = _Rewriter(list(_items(trace)), memory, empty_cache_every)
    error = None
    try:
        made.run()
    except OutOfMemoryError as caught:
        error = caught
    written = (
        Trace(trace.name, b"".join(made.events), b"".join(made.copies.records), trace.settings)
        if error is None
        else None
    )
    return Swapped(written, made.swapper.statistics, made.launches, made.steps, error)


def _raw(records: bytes) -> Iterator[tuple[Event, bytes]]:
    at = 0
    for event in events(records):
        end = at + 8 * int.from_bytes(records[at : at + 2], "little")
        yield event, records[at:end]
        at = end


def _items(trace: Trace) -> Iterator[_Item]:
    """Events, each with its work behind it; launches without work get what is assumed of them."""
    works = work.decode(trace.work)
    one = next(works, None)
    allocated: dict[int, Allocate] = {}
    for event, raw in _raw(trace.events):
        yield event, raw
        worked = False
        while one is not None and one.sequence <= event.sequence:
            worked = worked or one.kind in (work.LAUNCH, work.COPY, lib.DEEPUM_WORK_HOST_COPY)
            yield one
            one = next(works, None)
        if isinstance(event, Allocate):
            allocated[event.slot] = event
        elif isinstance(event, Free):
            allocated.pop(event.slot, None)
        elif isinstance(event, Execute) and not worked:
            yield assumed(event, allocated)


@dataclass
class _Allocation:
    """`tensors` by offset, which `offsets` has in order. `address`: of what is no segment of
    PyTorch's.
    """

    bytes: int
    address: int | None = None
    tensors: dict[int, Tensor] = field(default_factory=dict)
    offsets: list[int] = field(default_factory=list)


class _Rewriter:
    def __init__(self, items: list[_Item], memory: int, empty_cache_every: int | None) -> None:
        self.events: list[bytes] = []
        operations = [item for item in items if isinstance(item, Work) and item.kind in _OPERATIONS]
        self._compute = next((one.stream for one in operations if one.accesses), 0)
        self.copies = Copies(self._compute)
        self.swapper = Swapper(memory, self.copies)
        self.launches = 0
        self.steps = 0 if any(one.flags & work.ENDS_STEP for one in operations) else None
        self._items = items
        self._empty_cache_every = empty_cache_every
        self._of_pytorch = {
            (item[0].slot, item[0].generation)
            for item in items
            if not isinstance(item, Work) and isinstance(item[0], Block)
        }
        self._allocations: dict[int, _Allocation] = {}
        # The program's device memory: address and bytes by its own address.
        self._plain: dict[int, tuple[int, int]] = {}
        self._pinned_at = -1  # the operation that has pinned what it takes
        self._next = _next_operations(items)

    def run(self) -> None:
        """Raises OutOfMemoryError."""
        for at, item in enumerate(self._items):
            if isinstance(item, Work):
                self._work(at, item)
                continue
            event, raw = item
            self.copies.sequence = event.sequence
            if event.kind in _KEPT:
                self.events.append(_without_ranges(raw) if isinstance(event, Execute) else raw)
            if isinstance(event, Allocate):
                self._allocate(event)
            elif isinstance(event, Free):
                self._free(event.slot)
            elif isinstance(event, Block):
                self._block(at, event)

    def _allocate(self, event: Allocate) -> None:
        known = self._allocations.get(event.slot)
        if known is not None and known.bytes == event.bytes:
            return  # announced once more
        of_pytorch = (event.slot, event.generation) in self._of_pytorch
        self._allocations[event.slot] = _Allocation(
            event.bytes, None if of_pytorch else self.swapper.take(event.bytes)
        )

    def _free(self, slot: int) -> None:
        gone = self._allocations.pop(slot, None)
        if gone is None:
            return
        if gone.address is not None:
            self.swapper.give(gone.address, gone.bytes)
            return
        for tensor in gone.tensors.values():
            self.swapper.free(tensor)
        self.swapper.empty_cache()  # the program did that: nothing else gives segments back

    def _block(self, at: int, event: Block) -> None:
        place = self._allocations.get(event.slot)
        if place is None:
            raise ValueError(f"{event.kind} event {event.sequence}: in no allocation")
        before = place.tensors.pop(event.offset, None)
        if before is not None:
            del place.offsets[bisect.bisect_left(place.offsets, event.offset)]
            self.swapper.free(before)
        if event.kind == "block_active":
            self._pin_for_next(at)
            place.tensors[event.offset] = self.swapper.allocate(event.bytes)
            bisect.insort(place.offsets, event.offset)

    def _pin_for_next(self, at: int) -> None:
        """What the next operation takes that is there already, and is not taken back before it."""
        after = self._next[at]
        if after == self._pinned_at or after == len(self._items):
            return
        self._pinned_at = after
        ended = set()
        for item in self._items[at + 1 : after]:
            if isinstance(item, Work):
                continue
            event = item[0]
            if isinstance(event, Block):
                ended.add((event.slot, event.offset))
            elif isinstance(event, Free):
                ended |= {
                    (event.slot, offset)
                    for offset in self._allocations.get(event.slot, _Allocation(0)).offsets
                }
        operation = self._items[after]
        assert isinstance(operation, Work)
        self.swapper.pin(
            tensor for place, tensor in self._taken(operation).items() if place not in ended
        )

    def _taken(self, one: Work) -> dict[tuple[int, int], Tensor]:
        """The tensors that an operation touches, by slot and offset. Of whole UM blocks, those that
        they cover; of a range that is only estimated, the one that it begins in: it comes from a
        pointer, and what is known of it is that it is not longer.
        """
        taken = {}
        slot = low = high = -1  # of the latest: a gather touches many rows of one tensor
        for access in one.accesses:
            end = access.offset + access.bytes
            if access.slot == slot and low <= access.offset and end <= high:
                continue
            for offset, tensor in self._met(access):
                if isinstance(one, Assumed):
                    counts = access.offset <= offset and offset + tensor.bytes <= end
                else:
                    counts = offset <= access.offset or not access.flags & _ESTIMATED
                if counts:
                    taken[access.slot, offset] = tensor
                    slot, low, high = access.slot, offset, offset + tensor.bytes
        return taken

    def _met(self, access: Access) -> Iterator[tuple[int, Tensor]]:
        """The tensors that lie in the range, with their offsets, in order."""
        place = self._allocations.get(access.slot)
        if place is None:
            return
        end = access.offset + access.bytes
        for at in range(
            max(bisect.bisect_right(place.offsets, access.offset) - 1, 0), len(place.offsets)
        ):
            offset = place.offsets[at]
            if offset >= end:
                return
            tensor = place.tensors[offset]
            if offset + tensor.bytes > access.offset:
                yield offset, tensor

    def _work(self, at: int, one: Work) -> None:
        self.copies.sequence = one.sequence
        if one.kind in (lib.DEEPUM_WORK_MAP, lib.DEEPUM_WORK_UNMAP):
            self._plain_memory(one)
        elif one.kind in _OPERATIONS:
            self._operation(one)
        elif one.kind not in (
            lib.DEEPUM_WORK_PREFETCH,
            lib.DEEPUM_WORK_DISCARD,
            lib.DEEPUM_WORK_ADVISE,
        ):
            self.copies.put(one)

    def _operation(self, one: Work) -> None:
        taken = self._taken(one)
        tensors = list(taken.values())
        self.swapper.pin(tensors)
        self.swapper.access(tensors)
        accesses, elsewhere = self._placed(one, taken)
        device_bytes = one.device_bytes + (elsewhere if one.kind == work.LAUNCH else 0)
        self.copies.put(replace(one, accesses=tuple(accesses), device_bytes=device_bytes))
        self.swapper.unpin(tensors)
        self.launches += 1
        if self.steps is not None and one.kind == work.LAUNCH and one.flags & work.ENDS_STEP:
            self.steps += 1
        if self._empty_cache_every is not None and self.launches % self._empty_cache_every == 0:
            self.swapper.empty_cache()

    def _placed(self, one: Work, taken: dict[tuple[int, int], Tensor]) -> tuple[list[Access], int]:
        """Its accesses, where their memory is now; and bytes read and written in no tensor."""
        made, elsewhere = [], 0
        slot = low = high = address = -1  # of the latest
        for access in one.accesses:
            start, end = access.offset, access.offset + access.bytes
            if access.slot == slot and low <= start and end <= high:
                made.append(Access(BY_ADDRESS, access.flags, address + start - low, access.bytes))
                continue
            place = self._allocations.get(access.slot)
            if place is not None and place.address is not None:
                made.append(Access(BY_ADDRESS, access.flags, place.address + start, access.bytes))
                continue
            left = access.bytes
            for offset, tensor in self._met(access):
                if (access.slot, offset) in taken:
                    slot, low, high, address = (
                        access.slot,
                        offset,
                        offset + tensor.bytes,
                        self.swapper.address(tensor),
                    )
                    first, last = max(low, start), min(high, end)
                    made.append(
                        Access(BY_ADDRESS, access.flags, address + first - low, last - first)
                    )
                    left -= last - first
            if not access.flags & work.PERHAPS:
                elsewhere += left * (bool(access.flags & READ) + bool(access.flags & WRITE))
        return made, elsewhere

    def _plain_memory(self, one: Work) -> None:
        own = one.accesses[0].offset
        if one.kind == lib.DEEPUM_WORK_MAP:
            taken = one.accesses[0].bytes
            self._plain[own] = self.swapper.take(taken), taken
        elif own in self._plain:
            self.swapper.give(*self._plain.pop(own))


def _next_operations(items: list[_Item]) -> list[int]:
    """For each item the next operation's place; where there is none, the end."""
    made, following = [], len(items)
    for at in range(len(items) - 1, -1, -1):
        made.append(following)
        item = items[at]
        if isinstance(item, Work) and item.kind in _OPERATIONS:
            following = at
    return made[::-1]


def _without_ranges(raw: bytes) -> bytes:
    """An execution that touches no managed memory."""
    return (
        struct.pack("<H", _EXECUTE_BYTES // 8)
        + raw[2:_RANGES_AT]
        + bytes(_EXECUTE_BYTES - _RANGES_AT)
    )
