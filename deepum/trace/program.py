"""A made-up program: its memory, as PyTorch hands it out, and the events that the shim would tell
of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from deepum.core import UM_BLOCK_BYTES, BlockRange
from deepum.trace.allocator import Block, CachingAllocator
from deepum.trace.trace import Trace, TraceWriter

_DEVICE_BLOCKS = 1 << 20  # 2 TiB: a simulation puts its own card in its place


def hashed(text: str) -> int:
    """64 bits of a text, the same in every run."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def distinct(ranges: Sequence[BlockRange]) -> list[BlockRange]:
    """Each once, in order."""
    return list(dict.fromkeys(ranges))


def exact(slot: int, offset: int, size: int) -> BlockRange:
    """The UM blocks of `size` bytes, at least one of them."""
    first = offset // UM_BLOCK_BYTES
    return BlockRange(slot, first, (offset + size - 1) // UM_BLOCK_BYTES - first + 1)


class Program:
    """Memory comes from PyTorch's caching allocator and is reported as PyTorch reports it; `writer`
    takes the rest.
    """

    def __init__(self) -> None:
        self.writer = TraceWriter()
        self.writer.device(_DEVICE_BLOCKS)
        self.allocator = CachingAllocator()
        self.segment_names: list[int] = []  # by slot, as the shim names allocations
        self._ordinals: dict[int, int] = {}

    def allocate(self, size: int) -> Block:
        """Hands out a block for `size` bytes."""
        known = len(self.allocator.segments)
        block = self.allocator.allocate(size)
        for segment in self.allocator.segments[known:]:
            ordinal = self._ordinals[segment.bytes] = self._ordinals.get(segment.bytes, 0) + 1
            self.segment_names.append(hashed(f"0 {segment.bytes} {ordinal}"))
            self.writer.allocate(
                segment.slot, segment.bytes // UM_BLOCK_BYTES, self.segment_names[-1]
            )
        self._report(True, block)
        return block

    def free(self, block: Block) -> None:
        """Takes a block back."""
        self._report(False, block)
        self.allocator.free(block)

    def trace(self, name: str) -> Trace:
        """All that was told so far."""
        return self.writer.trace(name)

    def _report(self, active: bool, block: Block) -> None:
        allocator = self.allocator
        allocated = allocator.allocated_bytes - (0 if active else block.bytes)
        self.writer.block(
            active,
            block.segment.slot,
            block.offset,
            block.bytes,
            allocated,
            allocator.reserved_bytes,
        )
