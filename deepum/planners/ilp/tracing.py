"""The pattern of an iteration for the integer programs: launches become operations, items that are
used alike become tensors, and what hardly matters only takes room.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepum.planners.ilp.pattern import Access, Pattern, Tensor
from deepum.planners.ilp.program import Solved
from deepum.planners.problem import Floats, Plan, Problem

_Ints = npt.NDArray[np.int64]
_Uses = tuple[tuple[int, Access, int | None], ...]  # operation, access, death behind it


@dataclass(frozen=True)
class Grain:
    """How fine a pattern is. operations: at most, of even length in time. tensor_bytes: at most, of
    items that are used alike. least_bytes: of a tensor that may be moved. least_operations: between
    two of its accesses, somewhere.
    """

    operations: int = 64
    tensor_bytes: int = 1 << 62
    least_bytes: int = 1
    least_operations: int = 1


@dataclass(frozen=True)
class Traced:
    """gaps: of the problem, by tensor and stretch of the pattern."""

    pattern: Pattern
    gaps: tuple[tuple[tuple[int, ...], ...], ...]

    def plan(self, solved: Solved, base: Plan) -> Plan:
        """The base with the tensors' gaps as they were solved."""
        made = base.copy()
        for evicted, stretches in zip(solved.evicted, self.gaps, strict=True):
            for leaves, gaps in zip(evicted, stretches, strict=True):
                made[list(gaps)] = leaves
        return made

    def evicted(self, plan: Plan) -> dict[tuple[int, int], bool]:
        """Which stretches a plan evicts, by (tensor, stretch): those most of whose gaps it does."""
        return {
            (tensor, number): bool(2 * int(plan[list(gaps)].sum()) > len(gaps))
            for tensor, stretches in enumerate(self.gaps)
            for number, gaps in enumerate(stretches)
        }


def trace(problem: Problem, plan: Plan, ends_ns: Floats, grain: Grain) -> Traced:
    """Of a problem, with launches of even length by when each ends. What does not become a tensor
    has the room that the plan gives it.
    """
    of_launch = _operations(ends_ns, grain.operations)
    count = int(of_launch[-1]) + 1
    alike: dict[_Uses, list[tuple[int, list[int]]]] = defaultdict(list)
    for item, gaps in _by_item(problem).items():
        uses, leaving = _uses(problem, gaps, of_launch)
        if _moves(uses, count, grain.least_operations):
            alike[uses].append((item, leaving))
    tensors, numbers = [], []
    chosen: set[int] = set()
    for uses, items in alike.items():
        sizes = np.array([problem.item_bytes[item] for item, _ in items])
        if int(sizes.sum()) < grain.least_bytes:
            continue
        chosen.update(item for item, _ in items)
        parts = (np.cumsum(sizes) - 1) // grain.tensor_bytes
        for part in np.unique(parts):
            mine = np.flatnonzero(parts == part)
            tensors.append(
                Tensor(
                    int(sizes[mine].sum()),
                    {operation: access for operation, access, _ in uses},
                    {operation: death for operation, _, death in uses if death is not None},
                )
            )
            of_stretch = zip(*(items[index][1] for index in mine), strict=True)
            numbers.append(tuple(tuple(gaps) for gaps in of_stretch))
    durations = np.bincount(of_launch, problem.iteration.launch_ns, count)
    others = _held(problem, plan, chosen)
    reserved = tuple(int(others[of_launch == operation].max()) for operation in range(count))
    pattern = Pattern(tuple(map(float, durations)), tuple(tensors), problem.link, reserved)
    return Traced(pattern, tuple(numbers))


def _operations(ends_ns: Floats, most: int) -> _Ints:
    """The operation of each launch."""
    if len(ends_ns) <= most:
        return np.arange(len(ends_ns))
    starts = np.concatenate([[0.0], ends_ns[:-1]]) / ends_ns[-1]
    _, found = np.unique(np.minimum(starts * most, most - 1).astype(int), return_inverse=True)
    return found.astype(np.int64)


def _by_item(problem: Problem) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for number, gap in enumerate(problem.gaps):
        found[gap.item].append(number)
    return found


def _uses(problem: Problem, gaps: Sequence[int], of_launch: _Ints) -> tuple[_Uses, list[int]]:
    """An item's accesses by operation, and the gap behind each of them."""
    count, launches = int(of_launch[-1]) + 1, problem.launches

    def operation(launch: int) -> int:
        return int(of_launch[launch % launches]) + count * (launch // launches)

    uses, leaving = [], []
    needs, writes, entered = False, False, -1
    for at, number in enumerate(gaps):
        gap, before = problem.gaps[number], problem.gaps[gaps[at - 1]]
        start, end = operation(gap.start), operation(gap.end)
        if start != entered:
            needs, writes, entered = before.fetches, False, start
        writes = writes or gap.writer == gap.start or not before.fetches
        if end == start:
            continue
        access = Access.READ if not writes else Access.CHANGE if needs else Access.OVERWRITE
        death = None
        if gap.death is not None:
            # Where it ends amid an operation, its memory is free from the next one on.
            first = operation(gap.death)
            amid = operation(gap.death - 1) == first
            death = min(max(first + amid, start + 1), end)
        uses.append((start, access, death))
        leaving.append(number)
    return tuple(uses), leaving


def _moves(uses: _Uses, count: int, least: int) -> bool:
    """Whether so many operations are between two accesses, or an access and the content's end."""
    starts = [start for start, _, _ in uses]
    ends = [*starts[1:], starts[0] + count]
    return any(
        (end if death is None else death) - start > least
        for (start, _, death), end in zip(uses, ends, strict=True)
    )


def _held(problem: Problem, plan: Plan, without: Set[int]) -> _Ints:
    """Bytes on the device at each launch, without those items."""
    launches = problem.launches
    change = np.zeros(2 * launches + 1, dtype=np.int64)
    for gap, evicted in zip(problem.gaps, plan, strict=True):
        if gap.item not in without:
            kept = gap.end if gap.death is None else gap.death
            size = problem.item_bytes[gap.item]
            change[gap.start] += size
            change[gap.start + 1 if evicted else kept] -= size
    there = np.cumsum(change[:-1])
    return there[:launches] + there[launches:]
