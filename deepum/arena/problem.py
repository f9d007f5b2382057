"""Buffers that are to be placed in one arena, and what can be done with them (native/arena)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from deepum._core import ffi, lib
from deepum.arena.buffers import Buffer
from deepum.errors import DeepumError


class Fit(IntEnum):
    """Where a buffer is placed: in the lowest gap that is large enough, in the smallest one, or
    above all that lives at the same time.
    """

    LOWEST = lib.DEEPUM_ARENA_LOWEST
    SMALLEST = lib.DEEPUM_ARENA_SMALLEST
    ABOVE = lib.DEEPUM_ARENA_ABOVE


class Problem:
    """Raises ValueError where a lifetime is empty or begins before 0, a size is negative, an
    alignment not positive, or all sizes together are beyond 2^62 bytes.
    """

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self.buffers = tuple(buffers)
        try:
            rows = ffi.new(
                "deepum_arena_buffer[]",
                [(one.begin, one.end, one.size, one.alignment) for one in self.buffers],
            )
        except OverflowError:
            raise ValueError("a number is beyond 2^62; write smaller ones") from None
        made = lib.deepum_arena_create(rows, len(self.buffers))
        if made == ffi.NULL:
            raise ValueError(
                "a lifetime is empty or before 0, a size negative, an alignment not positive, or "
                "all sizes together are beyond 2^62 bytes"
            )
        self._native = ffi.gc(made, lib.deepum_arena_destroy)

    def __len__(self) -> int:
        """How many buffers there are."""
        return len(self.buffers)

    @property
    def load(self) -> int:
        """The most bytes that live at one time: no arena is smaller."""
        return int(lib.deepum_arena_load(self._native))

    @property
    def overlap(self) -> int:
        """The most buffers that live at one time."""
        return int(lib.deepum_arena_overlap(self._native))

    @property
    def largest(self) -> int:
        """Bytes of the largest buffer."""
        return max((one.size for one in self.buffers), default=0)

    def height(self, offsets: Sequence[int]) -> int:
        """Bytes of the arena that these offsets need. Raises ValueError where two buffers that live
        at the same time overlap, or an offset is negative or not aligned.
        """
        if len(offsets) != len(self):
            raise ValueError(f"{len(offsets)} offsets for {len(self)} buffers")
        found = int(lib.deepum_arena_height(self._native, ffi.new("int64_t[]", list(offsets))))
        if found == -1:
            raise ValueError("two buffers overlap, or an offset is negative or not aligned")
        return _there(found)

    def place(self, order: Sequence[int], fit: Fit) -> tuple[int, list[int]]:
        """All buffers placed in that order of their numbers: bytes of the arena, and offsets.
        Raises ValueError where a number is missing.
        """
        if sorted(order) != list(range(len(self))):
            raise ValueError("order: has to name each buffer once")
        offsets = ffi.new("int64_t[]", len(self))
        numbers = ffi.new("int32_t[]", list(order))
        height = int(lib.deepum_arena_place(self._native, numbers, fit, offsets))
        return _there(height), list(offsets)

    def search(self, goal: int, seed: int) -> Search:
        """For an arena of `goal` bytes at most, or as low as the load."""
        return Search(self, self._native, goal, seed)


class Search:
    """Made by `Problem.search`. height: of the best so far, with `offsets`. bound: no arena is
    smaller. ended: nothing lower is asked for, or there is none.
    """

    def __init__(self, problem: Problem, native: Any, goal: int, seed: int) -> None:
        self._problem = problem  # outlives the search
        made = lib.deepum_arena_search_create(native, goal, seed)
        if made == ffi.NULL:
            raise DeepumError("arena: memory is short for a search; try another allocator")
        self._native = ffi.gc(made, lib.deepum_arena_search_destroy)
        self._offsets = ffi.new("int64_t[]", len(problem))
        self.height, self.bound, self.ended = 0, problem.load, False

    @property
    def offsets(self) -> tuple[int, ...]:
        """By buffer."""
        return tuple(self._offsets)

    def advance(self, seconds: float) -> bool:
        """Until something better is found, or a bound; False where it ended, or the time did.
        Raises DeepumError.
        """
        height, bound = ffi.new("int64_t *"), ffi.new("int64_t *")
        found = lib.deepum_arena_search_next(self._native, seconds, self._offsets, height, bound)
        if found == lib.DEEPUM_ARENA_FAILED:
            raise DeepumError("arena: memory is short for a search; try another allocator")
        self.height, self.bound = int(height[0]), int(bound[0])
        self.ended = found == lib.DEEPUM_ARENA_DONE
        return bool(found == lib.DEEPUM_ARENA_BETTER)


def _there(height: int) -> int:
    if height < 0:
        raise DeepumError("arena: memory is short; place fewer buffers")
    return height
