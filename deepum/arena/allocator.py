"""Allocators behind one interface. Each yields lower and lower arenas until its time is spent."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from deepum.arena.buffers import Buffer
from deepum.arena.problem import Fit, Problem
from deepum.planners.planner import Limits


@dataclass(frozen=True)
class Allocation:
    """Offsets by buffer, bytes of the arena, and the bytes below which there is none."""

    offsets: tuple[int, ...]
    bytes: int
    bound_bytes: int

    @property
    def gap(self) -> float:
        """What it is above the bound, as a part of the bound."""
        return self.bytes / self.bound_bytes - 1 if self.bound_bytes else 0.0


class Allocator(ABC):
    """One way to allocate. name: as `deepum arena --allocator` has it."""

    name: str

    @abstractmethod
    def incumbents(
        self, problem: Problem, limits: Limits, capacity: int | None = None
    ) -> Iterator[Allocation]:
        """Each lower than the one before, or of a higher bound; the first in any case. Nothing
        lower than `capacity` bytes is looked for.
        """

    def best(self, problem: Problem, limits: Limits, capacity: int | None = None) -> Allocation:
        """The last of them."""
        *_, best = self.incumbents(problem, limits, capacity)
        return best


def _placed(problem: Problem, order: Sequence[int], fit: Fit) -> Allocation:
    height, offsets = problem.place(order, fit)
    return Allocation(tuple(offsets), height, problem.load)


def _order(problem: Problem, key: Callable[[Buffer], int | tuple[int, ...]]) -> list[int]:
    return sorted(range(len(problem)), key=lambda number: key(problem.buffers[number]))


class Greedy(Allocator):
    """The longest lifetime first, of these the largest, each above all that lives at the same time:
    a staircase on a chain.
    """

    name = "greedy"

    def incumbents(
        self, problem: Problem, limits: Limits, capacity: int | None = None
    ) -> Iterator[Allocation]:
        order = _order(problem, lambda one: (one.begin - one.end, -one.size))
        yield _placed(problem, order, Fit.ABOVE)


def path_cover(problem: Problem) -> list[list[int]]:
    """Buffers in groups of disjoint lifetimes, the fewest that there can be: a minimum path cover
    of the order "ends before the other begins". First fit by begin finds as many as live at once.
    """
    groups: list[list[int]] = []
    free: list[int] = []
    busy: list[tuple[int, int]] = []  # until when, which
    for number in _order(problem, lambda one: (one.begin, one.end)):
        buffer = problem.buffers[number]
        while busy and busy[0][0] <= buffer.begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free:
            groups.append([])
            free.append(len(groups) - 1)
        group = heapq.heappop(free)
        groups[group].append(number)
        heapq.heappush(busy, (buffer.end, group))
    return groups


class PathCover(Allocator):
    """Group by group of a minimum path cover, those with the largest buffers first, each buffer
    above all that lives at the same time. The arena has at most `path_cover_bound` bytes, however
    deep the network is.
    """

    name = "path-cover"

    def incumbents(
        self, problem: Problem, limits: Limits, capacity: int | None = None
    ) -> Iterator[Allocation]:
        def largest(group: Sequence[int]) -> int:
            return max(problem.buffers[number].size for number in group)

        groups = sorted(path_cover(problem), key=largest, reverse=True)
        yield _placed(problem, [number for group in groups for number in group], Fit.ABOVE)


def path_cover_bound(problem: Problem) -> int:
    """As many buffers as live at once, all as large as the largest, in bytes; where offsets are
    aligned, so much more for each.
    """
    return problem.overlap * (
        problem.largest + max((one.alignment for one in problem.buffers), default=1) - 1
    )


class BestFit(Allocator):
    """The lowest of eight: largest, most bytes times time, longest and earliest first, in the
    lowest gap that is large enough and in the smallest.
    """

    name = "best-fit"
    _keys: tuple[Callable[[Buffer], int | tuple[int, ...]], ...] = (
        lambda one: -one.size,
        lambda one: -one.size * (one.end - one.begin),
        lambda one: (one.begin - one.end, -one.size),
        lambda one: (one.begin, -one.size),
    )

    def incumbents(
        self, problem: Problem, limits: Limits, capacity: int | None = None
    ) -> Iterator[Allocation]:
        best: Allocation | None = None
        for key in self._keys:
            for fit in (Fit.LOWEST, Fit.SMALLEST):
                found = _placed(problem, _order(problem, key), fit)
                if best is None or found.bytes < best.bytes:
                    best = found
                    yield best
                if best.bytes <= max(capacity or 0, problem.load) or limits.left == 0:
                    return


class Search(Allocator):
    """Canonical solutions with restarts, from greedy placements on, part by part of what can be
    placed apart (native/arena/search.hpp).
    """

    name = "search"

    def incumbents(
        self, problem: Problem, limits: Limits, capacity: int | None = None
    ) -> Iterator[Allocation]:
        search = problem.search(capacity or 0, limits.seed)
        while search.advance(limits.left_by_clock):
            yield Allocation(search.offsets, search.height, search.bound)


ALLOCATORS: Sequence[type[Allocator]] = (Greedy, PathCover, BestFit, Search)
BY_NAME = {allocator.name: allocator for allocator in ALLOCATORS}
