"""LMS itself: tensors that are in use, candidates for swapping, or on the host; and whose memory is
taken when there is none left.

A tensor is pinned while an operation runs that takes it. Before, it is brought back if it is on the
host; after, it is a candidate, the youngest. When a block is asked for and neither the cache nor
the driver has one, candidates are swapped out, oldest first, the host waiting for the copy: one
whose block, with what is free beside it, is large enough; else all in segments that are large
enough; else all (`reclaim_one`, `reclaim_fragments`, `reclaim_all`). Only then is the cache given
back to the driver for another try.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from deepum.simulate.lms.copies import Copies
from deepum.simulate.lms.history import Histories
from deepum.trace.allocator import Block, CachingAllocator, is_small, rounded

_SHARE = 95, 100  # of the memory that is free at the start, for tensors (LMSSettings::device_limit)


class OutOfMemoryError(Exception):
    """No memory for `request` bytes, with all swapped out that can be. `allocated`: bytes in
    blocks; `memory`: of the card.
    """

    def __init__(self, request: int, allocated: int, memory: int) -> None:
        super().__init__(f"{request} bytes asked for, {allocated} in blocks of a card of {memory}")
        self.request, self.allocated, self.memory = request, allocated, memory


class _State(Enum):
    NEW = 0  # no operation has taken it yet
    PINNED = 1
    CANDIDATE = 2
    ON_HOST = 3


class Tensor:
    """Memory of a PyTorch storage. `event`: of a copy on its way, either way."""

    __slots__ = ("block", "bytes", "event", "host", "name", "state", "turn")

    def __init__(self, block: Block, size: int) -> None:
        self.block: Block | None = block  # None: on the host
        self.bytes = size  # what was asked for; the block may have more
        self.state = _State.NEW
        self.event: int | None = None
        self.host = False  # has memory there
        self.name: int | None = None  # in the histories
        self.turn = 0  # among candidates

    @property
    def place(self) -> Block:
        """Where it is on the device, while it is."""
        assert self.block is not None
        return self.block


@dataclass
class SwapStatistics:
    """What was done, since the start. `speculative`: copies out before the memory was asked for,
    and how many of them were then needed.
    """

    swapped_out: int = 0
    swapped_in: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
    speculative: int = 0
    speculative_needed: int = 0
    host_bytes: int = 0
    peak_host_bytes: int = 0
    peak_reserved_bytes: int = 0


class Swapper:
    """`memory`: of the card, bytes. Every method that needs memory raises OutOfMemoryError."""

    def __init__(self, memory: int, copies: Copies) -> None:
        self.statistics = SwapStatistics()
        self._memory = memory
        self._copies = copies
        self._allocator = CachingAllocator()
        self._others = 0  # bytes that are not the allocator's
        self._addresses: dict[int, int] = {}  # of segments
        # Of small blocks, of others; oldest first.
        self._candidates: dict[bool, dict[Tensor, None]] = {True: {}, False: {}}
        self._turns = 0
        self._histories = Histories()

    def address(self, tensor: Tensor) -> int:
        """Of its first byte."""
        return self._addresses[tensor.place.segment.slot] + tensor.place.offset

    def take(self, size: int) -> int:
        """Memory beside the allocator, as `cudaMalloc` gives it; its address."""
        if self._allocator.reserved_bytes + self._others + size > self._memory:
            raise OutOfMemoryError(size, self._allocator.allocated_bytes, self._memory)
        self._others += size
        return self._copies.map(size)

    def give(self, address: int, size: int) -> None:
        """Gives that back."""
        self._others -= size
        self._copies.drain()
        self._copies.unmap(address)

    def allocate(self, size: int) -> Tensor:
        """A new tensor."""
        return Tensor(self._block(size), size)

    def free(self, tensor: Tensor) -> None:
        """It is gone; a copy on its way is waited for."""
        self._arrive(tensor)
        if tensor.state is _State.CANDIDATE:
            self._remove(tensor, swapped=False)
        if tensor.state is _State.ON_HOST:
            self._free_host(tensor)
        else:
            self._allocator.free(tensor.place)
        if tensor.name is not None:
            self._histories.ended()

    def pin(self, tensors: Iterable[Tensor]) -> None:
        """An operation takes them, one after the other: what was not pinned yet may go for
        what is.
        """
        for tensor in tensors:
            if tensor.state is _State.CANDIDATE:
                self._remove(tensor, swapped=False)
            elif tensor.state is _State.ON_HOST:
                tensor.block = self._block(tensor.bytes)
                tensor.event = self._copies.back(self.address(tensor), tensor.bytes)
                self.statistics.swapped_in += 1
                self.statistics.bytes_in += tensor.bytes
            tensor.state = _State.PINNED

    def access(self, tensors: Iterable[Tensor]) -> None:
        """It uses their memory: the host waits for copies on their way."""
        for tensor in tensors:
            self._arrive(tensor)

    def unpin(self, tensors: list[Tensor]) -> None:
        """It is over, as far as the host knows: they are candidates, the first of them the
        youngest.
        """
        for tensor in reversed(tensors):
            tensor.state = _State.CANDIDATE
            self._candidates[tensor.place.segment.small][tensor] = None
            tensor.turn = self._turns = self._turns + 1
            if tensor.name is None:
                tensor.name = self._histories.name(
                    tensor.place.bytes, sum(map(len, self._candidates.values()))
                )
            if self._histories.predicts(tensor.name):
                self._copy_out(tensor)
                self.statistics.speculative += 1

    def empty_cache(self) -> None:
        """Cached segments go back to the driver."""
        gone = self._allocator.release()
        if gone:
            self._copies.drain()
        for segment in gone:
            self._copies.unmap(self._addresses.pop(segment.slot))

    def _arrive(self, tensor: Tensor) -> None:
        if tensor.event is not None:
            self._copies.wait(tensor.event)
            tensor.event = None
            self._free_host(tensor)

    def _free_host(self, tensor: Tensor) -> None:
        if tensor.host:
            self.statistics.host_bytes -= tensor.bytes
            tensor.host = False

    def _remove(self, tensor: Tensor, swapped: bool) -> None:
        del self._candidates[tensor.place.segment.small][tensor]
        assert tensor.name is not None
        self._histories.record(tensor.name, swapped)

    # --- Memory

    def _block(self, size: int) -> Block:
        tries: tuple[Callable[[int], Block | None], ...] = (
            self._allocator.cached,
            self._grown,
            self._reclaimed,
            self._after_emptying,
        )
        for attempt in tries:
            block = attempt(size)
            if block is not None:
                return block
        raise OutOfMemoryError(size, self._allocator.allocated_bytes, self._memory)

    def _grown(self, size: int) -> Block | None:
        if self._allocator.limit is None:
            share, of = _SHARE
            self._allocator.limit = (self._memory - self._others) * share // of
        self._allocator.limit = min(self._allocator.limit, self._memory - self._others)
        known = len(self._allocator.segments)
        block = self._allocator.grown(size)
        for segment in self._allocator.segments[known:]:
            self._addresses[segment.slot] = self._copies.map(segment.bytes)
            self.statistics.peak_reserved_bytes = max(
                self.statistics.peak_reserved_bytes, self._allocator.reserved_bytes
            )
        return block

    def _after_emptying(self, size: int) -> Block | None:
        self.empty_cache()
        return self._grown(size)

    def _reclaimed(self, size: int) -> Block | None:
        needed = rounded(size)
        alike = self._candidates[is_small(needed)]
        while one := next((tensor for tensor in alike if _makes_room(tensor.place, needed)), None):
            self._swap_out([one])
            if (block := self._allocator.cached(size)) is not None:
                return block
        self._swap_out([tensor for tensor in alike if tensor.place.segment.bytes >= needed])
        block = self._allocator.cached(size)
        if block is None:
            self._swap_out(
                sorted(
                    (tensor for pool in self._candidates.values() for tensor in pool),
                    key=lambda tensor: tensor.turn,
                )
            )
            block = self._allocator.cached(size)
        return block

    # All copies are begun before the first is waited for.
    def _swap_out(self, tensors: list[Tensor]) -> None:
        for tensor in tensors:
            if tensor.event is None:
                self._copy_out(tensor)
            else:
                self.statistics.speculative_needed += 1
        for tensor in tensors:
            assert tensor.event is not None
            self._copies.wait(tensor.event)
            tensor.event = None
            self._remove(tensor, swapped=True)
            self._allocator.free(tensor.place)
            tensor.block = None
            tensor.state = _State.ON_HOST
            self.statistics.swapped_out += 1

    def _copy_out(self, tensor: Tensor) -> None:
        tensor.event = self._copies.out(self.address(tensor), tensor.bytes)
        tensor.host = True
        statistics = self.statistics
        statistics.bytes_out += tensor.bytes
        statistics.host_bytes += tensor.bytes
        statistics.peak_host_bytes = max(statistics.peak_host_bytes, statistics.host_bytes)


def _makes_room(block: Block, size: int) -> bool:
    """Whether it would be large enough, with its free neighbours."""
    if block.segment.bytes < size:
        return False
    have = block.bytes
    for near in (block.before, block.after):
        if near is not None and near.free:
            have += near.bytes
    return have >= size
