"""Where PyTorch's caching allocator puts tensors: c10/cuda/CUDACachingAllocator.cpp, one stream,
default settings.

Sizes are rounded to 512 bytes; requests up to 1 MiB come from 2 MiB segments, up to 10 MiB from 20
MiB segments, larger ones from segments of their own in multiples of 2 MiB. Best fit, the lowest
address of several; what is left of a block is split off (beyond 1 MiB in the large pool) and merged
again when it is free.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass

from deepum.core import UM_BLOCK_BYTES, BlockRange

_MIN_BLOCK = 512
_SMALL = 1 << 20
_SMALL_BUFFER = 2 << 20
_LARGE_BUFFER = 20 << 20
_MIN_LARGE = 10 << 20
_ROUND_LARGE = 2 << 20


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def rounded(size: int) -> int:
    """What a block for so many bytes has at least."""
    return max(_up(size, _MIN_BLOCK), _MIN_BLOCK)


def is_small(size: int) -> bool:
    """Whether blocks of that rounded size come from the pool of small ones."""
    return size <= _SMALL


@dataclass(slots=True)
class Segment:
    """What was asked of the driver: a slot of whole UM blocks."""

    slot: int
    bytes: int

    @property
    def small(self) -> bool:
        """Whether it is of the pool of small blocks."""
        return self.bytes == _SMALL_BUFFER


@dataclass(slots=True, eq=False)
class Block:
    """A piece of a segment; `before` and `after` are its neighbours there."""

    segment: Segment
    offset: int
    bytes: int
    free: bool = True
    before: Block | None = None
    after: Block | None = None

    @property
    def range(self) -> BlockRange:
        """Its UM blocks."""
        first = self.offset // UM_BLOCK_BYTES
        return BlockRange(
            self.segment.slot, first, (self.offset + self.bytes - 1) // UM_BLOCK_BYTES - first + 1
        )


_Key = tuple[int, int, int]


class _Pool:
    """Free blocks by size, then place."""

    def __init__(self) -> None:
        self._keys: list[_Key] = []
        self._blocks: dict[_Key, Block] = {}

    @staticmethod
    def _key(block: Block) -> _Key:
        return block.bytes, block.segment.slot, block.offset

    def add(self, block: Block) -> None:
        key = self._key(block)
        bisect.insort(self._keys, key)
        self._blocks[key] = block

    def whole(self) -> list[Block]:
        """Those that are all of their segment, smallest first."""
        return [
            block
            for block in map(self._blocks.__getitem__, self._keys)
            if block.before is None and block.after is None
        ]

    def remove(self, block: Block) -> None:
        key = self._key(block)
        del self._keys[bisect.bisect_left(self._keys, key)]
        del self._blocks[key]

    def best(self, size: int) -> Block | None:
        at = bisect.bisect_left(self._keys, (size, 0, 0))
        return self._blocks[self._keys[at]] if at < len(self._keys) else None


class CachingAllocator:
    """Hands blocks out and takes them back. `segments` grows by what it asks the driver for;
    `limit`: most that it may hold, bytes.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.segments: list[Segment] = []  # all that there ever were
        self.allocated_bytes = 0  # in blocks handed out
        self.reserved_bytes = 0
        self._pools = {True: _Pool(), False: _Pool()}

    def allocate(self, size: int) -> Block:
        """A block for `size` bytes, at least one. Raises MemoryError at the limit."""
        block = self.cached(size) or self.grown(size)
        if block is None:
            raise MemoryError(f"{size} bytes beside {self.reserved_bytes} of at most {self.limit}")
        return block

    def cached(self, size: int) -> Block | None:
        """A block of what is cached, if one is large enough."""
        size = rounded(size)
        pool = self._pools[size <= _SMALL]
        block = pool.best(size)
        if block is None:
            return None
        pool.remove(block)
        return self._hand_out(block, size)

    def grown(self, size: int) -> Block | None:
        """A block of a new segment, unless that would go beyond the limit."""
        size = rounded(size)
        segment_bytes = (
            _SMALL_BUFFER
            if size <= _SMALL
            else _LARGE_BUFFER
            if size < _MIN_LARGE
            else _up(size, _ROUND_LARGE)
        )
        if self.limit is not None and self.reserved_bytes + segment_bytes > self.limit:
            return None
        segment = Segment(len(self.segments), segment_bytes)
        self.segments.append(segment)
        self.reserved_bytes += segment.bytes
        return self._hand_out(Block(segment, 0, segment.bytes), size)

    def _hand_out(self, block: Block, size: int) -> Block:
        """What is beyond `size` is split off where PyTorch does that."""
        small = size <= _SMALL
        rest = block.bytes - size
        if rest >= _MIN_BLOCK if small else rest > _SMALL:
            left = Block(block.segment, block.offset + size, rest, before=block, after=block.after)
            if block.after is not None:
                block.after.before = left
            block.after, block.bytes = left, size
            self._pools[small].add(left)
        block.free = False
        self.allocated_bytes += block.bytes
        return block

    def release(self) -> list[Segment]:
        """Gives the driver back what is cached of whole segments (`empty_cache`)."""
        gone = []
        for pool in self._pools.values():
            for block in pool.whole():
                pool.remove(block)
                self.reserved_bytes -= block.segment.bytes
                gone.append(block.segment)
        return gone

    def free(self, block: Block) -> None:
        """Takes it back. Its place and size stay readable only until the next call."""
        self.allocated_bytes -= block.bytes
        block.free = True
        pool = self._pools[block.segment.small]
        before, after = block.before, block.after
        if after is not None and after.free:
            pool.remove(after)
            block.bytes += after.bytes
            block.after = after.after
            if block.after is not None:
                block.after.before = block
        if before is not None and before.free:
            pool.remove(before)
            before.bytes += block.bytes
            before.after = block.after
            if before.after is not None:
                before.after.before = before
            block = before
        pool.add(block)
