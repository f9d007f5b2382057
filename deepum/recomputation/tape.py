"""Writes the trace of a rewritten program: places its storages by PyTorch's allocator, and tells of
launches on them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from deepum._core import lib
from deepum.core import UM_BLOCK_BYTES, Allocate, BlockRange, Event, Free
from deepum.recomputation.contents import Operation, Other, Storage
from deepum.trace import TraceWriter, work
from deepum.trace.allocator import Block, CachingAllocator
from deepum.trace.program import distinct, exact, hashed
from deepum.trace.work import Access, Work, access_of

_COPY: int = lib.DEEPUM_EXECUTE_COPY
Place = Callable[[Storage], Block]


class _Writer(TraceWriter):
    """Work is given as it is."""

    def add(self, one: Work) -> None:
        self._add(one)


class Tape:
    """`others`: slots of memory that is not PyTorch's, which keeps its place. `limit`: bytes that
    the allocator and those may hold at most. Sequences are new.
    """

    def __init__(self, others: Collection[int] = (), limit: int | None = None) -> None:
        self.allocator = CachingAllocator(limit)
        self._writer = _Writer()
        self._others = set(others)
        self._other_bytes: dict[int, int] = {}  # by slot
        self._slots: list[int] = []  # by segment
        self._next_slot = 0
        self._names: list[int] = []
        self._ordinals: dict[int, int] = {}

    def hand_out(self, size: int) -> Block:
        """A block for so many bytes; at the limit the cache is emptied first. Raises MemoryError
        where that is not enough.
        """
        known = len(self.allocator.segments)
        try:
            block = self.allocator.allocate(size)
        except MemoryError:
            self.empty_cache()
            block = self.allocator.allocate(size)
        for segment in self.allocator.segments[known:]:
            while self._next_slot in self._others:
                self._next_slot += 1
            ordinal = self._ordinals[segment.bytes] = self._ordinals.get(segment.bytes, 0) + 1
            self._slots.append(self._next_slot)
            self._names.append(hashed(f"0 {segment.bytes} {ordinal}"))
            self._writer.allocate(self._next_slot, segment.bytes // UM_BLOCK_BYTES, self._names[-1])
            self._next_slot += 1
        self._report(True, block)
        return block

    def give_back(self, block: Block) -> None:
        """And takes it back."""
        self._report(False, block)
        self.allocator.free(block)

    def synchronise(self) -> None:
        """The program waits for the GPU."""
        self._writer.synchronise()

    def empty_cache(self) -> None:
        """Gives back to the driver what is cached of whole segments, as `torch.cuda.empty_cache`
        does; the program waits for the GPU then.
        """
        self._writer.synchronise()
        for segment in self.allocator.release():
            self._writer.free(self._slots[segment.slot])

    def launch(self, operation: Operation, place: Place, ends_step: bool) -> None:
        """The launch or copy, on its storages where they are. `ends_step`: it may be the last of
        its step.
        """
        blocks = [place(use.storage) for use in operation.uses]
        starts = [(self._slots[one.segment.slot], one.offset) for one in blocks]
        accesses = []
        for at, access in operation.accesses:
            if at is not None:
                slot, offset = starts[at]
                _, flags, start, size = access
                access = access_of((slot, flags, offset + start, size))
            accesses.append(access)
        event, one = operation.event, operation.work
        if event.flags & _COPY:
            self._copy(operation, accesses)
        else:
            ranges = [
                replace(blocks[at].range, slot=self._slots[blocks[at].segment.slot])
                for at in operation.in_event
            ]
            self._writer.execute(
                event.execution_hash,
                distinct([*ranges, *operation.others]),
                event.stream,
                device=event.device,
                flags=event.flags,
            )
        flags = one.flags if ends_step else one.flags & ~work.ENDS_STEP
        self._writer.add(
            replace(one, sequence=self._writer.sequence, flags=flags, accesses=tuple(accesses))
        )

    def _copy(self, operation: Operation, accesses: list[Access]) -> None:
        """Of the driver's, whose ranges are exact, and whose identity has its place in it where it
        is between host and device.
        """
        event, one = operation.event, operation.work
        written: list[BlockRange] = []
        read: list[BlockRange] = []
        identity = event.execution_hash
        for access in accesses:
            if access.slot == work.BY_ADDRESS:
                continue
            flags = access.flags
            if one.kind == work.COPY:
                flags = work.WRITE if one.flags & work.TO_DEVICE else work.READ
                identity = self._identity(operation, access)
            where = exact(access.slot, access.offset, access.bytes)
            (written if flags & work.WRITE else read).append(where)
        self._writer.execute(
            identity, (), event.stream, distinct(written), distinct(read), event.device, event.flags
        )

    def _identity(self, operation: Operation, access: Access) -> int:
        if access.slot in self._others:
            return operation.event.execution_hash
        to_device = bool(operation.work.flags & work.TO_DEVICE)
        name = self._names[self._slots.index(access.slot)]
        return hashed(f"copy {to_device} {name} {access.offset} {access.bytes}")

    def other(self, one: Other) -> None:
        """An event as it stands."""
        if isinstance(one.event, (Allocate, Free)) and one.event.slot not in self._others:
            raise ValueError(f"slot {one.event.slot}: is not among the others")
        self._limit(one.event)
        self._writer.record(one.kind, one.body, one.event.device, one.event.flags)

    def _limit(self, event: Event) -> None:
        """Memory that is not PyTorch's takes its part of the limit."""
        if self.allocator.limit is None:
            return
        if isinstance(event, Allocate):
            self._other_bytes[event.slot] = event.bytes
            self.allocator.limit -= event.bytes
        elif isinstance(event, Free):
            self.allocator.limit += self._other_bytes.pop(event.slot, 0)

    def work(self, one: Work) -> None:
        """Work beside launches, behind the latest event."""
        self._writer.add(replace(one, sequence=self._writer.sequence))

    def take(self) -> tuple[bytes, bytes]:
        """The events and the work that were written since the last call."""
        made = self._writer.trace("")
        return made.events, made.work

    def _report(self, active: bool, block: Block) -> None:
        allocator = self.allocator
        allocated = allocator.allocated_bytes - (0 if active else block.bytes)
        self._writer.block(
            active,
            self._slots[block.segment.slot],
            block.offset,
            block.bytes,
            allocated,
            allocator.reserved_bytes,
        )
