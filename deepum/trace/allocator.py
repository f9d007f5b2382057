"""Where PyTorch's caching allocator puts tensors: c10/cuda/CUDACachingAllocator.cpp, one stream, default settings.

Sizes are rounded to 512 bytes; requests up to 1 MiB come from 2 MiB segments, up to 10 MiB from 20 MiB segments, larger ones from
segments of their own in multiples of 2 MiB. Best fit, the lowest address of several; what is left of a block is split off (beyond 1 MiB
in the large pool) and merged again when it is free.
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


@dataclass(slots=True)
class Segment:
    """What was asked of the driver: a slot of whole UM blocks."""

    slot: int
    bytes: int


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
        return BlockRange(self.segment.slot, first, (self.offset + self.bytes - 1) // UM_BLOCK_BYTES - first + 1)


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

    def remove(self, block: Block) -> None:
        key = self._key(block)
        del self._keys[bisect.bisect_left(self._keys, key)]
        del self._blocks[key]

    def best(self, size: int) -> Block | None:
        at = bisect.bisect_left(self._keys, (size, 0, 0))
        return self._blocks[self._keys[at]] if at < len(self._keys) else None


class CachingAllocator:
    """Hands blocks out and takes them back. `segments` grows by what it asks the driver for."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.allocated_bytes = 0  # in blocks handed out
        self.reserved_bytes = 0
        self._pools = {True: _Pool(), False: _Pool()}

    def allocate(self, size: int) -> Block:
        """A block for `size` bytes, at least one."""
        size = max(_up(size, _MIN_BLOCK), _MIN_BLOCK)
        small = size <= _SMALL
        pool = self._pools[small]
        block = pool.best(size)
        if block is not None:
            pool.remove(block)
        else:
            segment = Segment(
                len(self.segments), _SMALL_BUFFER if small else _LARGE_BUFFER if size < _MIN_LARGE else _up(size, _ROUND_LARGE)
            )
            self.segments.append(segment)
            self.reserved_bytes += segment.bytes
            block = Block(segment, 0, segment.bytes)
        rest = block.bytes - size
        if rest >= _MIN_BLOCK if small else rest > _SMALL:
            left = Block(block.segment, block.offset + size, rest, before=block, after=block.after)
            if block.after is not None:
                block.after.before = left
            block.after, block.bytes = left, size
            pool.add(left)
        block.free = False
        self.allocated_bytes += block.bytes
        return block

    def free(self, block: Block) -> None:
        """Takes it back. Its place and size stay readable only until the next call."""
        self.allocated_bytes -= block.bytes
        block.free = True
        pool = self._pools[block.segment.bytes == _SMALL_BUFFER]
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
