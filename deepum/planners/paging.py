"""Demand paging with least-recently-used eviction, what the profiling phase of Lee's thesis (SNU,
section 5.3) does and its figures are relative to: what a launch needs is fetched when it is next,
room is made by what was used longest ago, and nothing overlaps.
"""

from __future__ import annotations

from collections import OrderedDict

from deepum.planners.problem import Problem

_ITERATIONS = 3  # of which the last is measured


class _Paging:
    """A card's items, the one used longest ago first."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._there: OrderedDict[int, None] = OrderedDict()
        self._dirty: set[int] = set()
        self._free = problem.link.memory_bytes
        self.moving_ns = 0.0

    def drop(self, item: int) -> None:
        """Its content ended."""
        self._dirty.discard(item)
        if item in self._there:
            del self._there[item]
            self._free += int(self._problem.item_bytes[item])

    def use(self, item: int, fetches: bool, used: set[int]) -> bool:
        """False where there is no room beside what the launch uses."""
        size, link = int(self._problem.item_bytes[item]), self._problem.link
        if item not in self._there:
            while self._free < size:
                victim = next((one for one in self._there if one not in used), None)
                if victim is None:
                    return False
                if victim in self._dirty:
                    self.moving_ns += int(self._problem.item_bytes[victim]) / link.out_gbps
                self.drop(victim)
            self._free -= size
            self.moving_ns += size / link.in_gbps if fetches else 0.0
        self._there[item] = None
        self._there.move_to_end(item)
        return True

    def write(self, item: int) -> None:
        """The host's content is another from now on."""
        self._dirty.add(item)


def demand_paging(problem: Problem) -> float:
    """ns of a steady iteration; infinite where a launch needs more than the memory."""
    launches = problem.launches
    ending: list[list[int]] = [[] for _ in range(launches)]
    starting: list[list[int]] = [[] for _ in range(launches)]
    dying: list[list[int]] = [[] for _ in range(launches)]
    for number, gap in enumerate(problem.gaps):
        ending[gap.end % launches].append(number)
        starting[gap.start].append(number)
        if gap.death is not None:
            dying[gap.death % launches].append(number)
    paging, before = _Paging(problem), 0.0
    for _ in range(_ITERATIONS):
        before = paging.moving_ns
        for launch in range(launches):
            for number in dying[launch]:
                paging.drop(problem.gaps[number].item)
            used = {problem.gaps[number].item for number in ending[launch]}
            for number in ending[launch]:
                gap = problem.gaps[number]
                if not paging.use(gap.item, gap.fetches, used):
                    return float("inf")
            for number in starting[launch]:
                gap = problem.gaps[number]
                if gap.writer == gap.start:
                    paging.write(gap.item)
    return problem.iteration.compute_ns + paging.moving_ns - before
