"""The model of PyTorch's caching allocator: where blocks are put, what is asked of the driver."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from deepum.core import UM_BLOCK_BYTES
from deepum.trace.allocator import Block, CachingAllocator

MIB = 1 << 20


@pytest.mark.parametrize(
    ("size", "segment", "block"),
    [
        (1, 2 * MIB, 512),
        (1000, 2 * MIB, 1024),
        (MIB, 2 * MIB, MIB),
        (MIB + 1, 20 * MIB, MIB + 512),
        (10 * MIB - 512, 20 * MIB, 10 * MIB - 512),
        (10 * MIB, 10 * MIB, 10 * MIB),
        (11 * MIB, 12 * MIB, 12 * MIB),  # a remainder of up to 1 MiB stays with the block
        (13 * MIB - 512, 14 * MIB, 13 * MIB - 512),
        (40 * MIB, 40 * MIB, 40 * MIB),
    ],
)
def test_sizes_are_pytorchs(size: int, segment: int, block: int) -> None:
    allocator = CachingAllocator()
    made = allocator.allocate(size)
    assert (made.segment.bytes, made.bytes, made.offset) == (segment, block, 0)
    assert (allocator.reserved_bytes, allocator.allocated_bytes) == (segment, block)


def test_the_best_fit_is_taken_and_the_rest_split_off() -> None:
    allocator = CachingAllocator()
    large, small = allocator.allocate(64 * MIB), allocator.allocate(32 * MIB)
    allocator.free(large)
    allocator.free(small)
    again = allocator.allocate(20 * MIB)
    assert again.segment is small.segment
    beside = allocator.allocate(12 * MIB)
    assert (beside.segment, beside.offset) == (small.segment, 20 * MIB)
    assert allocator.reserved_bytes == 96 * MIB


def test_neighbours_are_merged_again() -> None:
    allocator = CachingAllocator()
    allocator.free(allocator.allocate(60 * MIB))
    pieces = [allocator.allocate(20 * MIB) for _ in range(3)]
    for at in (0, 2, 1):
        allocator.free(pieces[at])
    assert allocator.allocate(60 * MIB).offset == 0
    assert allocator.reserved_bytes == 60 * MIB


def test_blocks_tell_their_um_blocks() -> None:
    allocator = CachingAllocator()
    allocator.allocate(3 * MIB)
    second = allocator.allocate(3 * MIB)
    assert (second.range.slot, second.range.first, second.range.count) == (0, 1, 2)


@pytest.mark.parametrize("seed", range(20))
def test_blocks_never_overlap_and_all_is_given_back(seed: int) -> None:
    random, allocator = Random(seed), CachingAllocator()
    held: list[Block] = []
    for _ in range(400):
        if held and random.random() < 0.48:
            allocator.free(held.pop(random.randrange(len(held))))
        else:
            held.append(allocator.allocate(int(2 ** random.uniform(0, 26))))
        spans = sorted(
            (block.segment.slot, block.offset, block.offset + block.bytes) for block in held
        )
        assert all(a[0] != b[0] or a[2] <= b[1] for a, b in itertools.pairwise(spans))
        assert all(block.offset + block.bytes <= block.segment.bytes for block in held)
        assert allocator.allocated_bytes == sum(block.bytes for block in held)
        assert allocator.reserved_bytes == sum(segment.bytes for segment in allocator.segments)
    reserved = allocator.reserved_bytes
    for block in held:
        allocator.free(block)
    assert allocator.allocated_bytes == 0
    for segment in allocator.segments:  # whole again: each can be had in one piece
        assert (
            allocator.allocate(segment.bytes if segment.bytes != UM_BLOCK_BYTES else MIB).bytes > 0
        )
    assert allocator.reserved_bytes == reserved
