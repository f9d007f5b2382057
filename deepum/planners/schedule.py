"""A plan of gaps as moves of UM blocks at launches, which a core follows.

What leaves is evicted behind its last use. What comes back is fetched in the order of need, behind
the first launch from which on there is room for it, by the plan, at all launches up to the need.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepum.core import Plan, PlannedKind, PlannedMove, PlanPoint
from deepum.planners.problem import Plan as GapPlan
from deepum.planners.problem import Problem
from deepum.planners.recorded import RecordedIteration

_ROUNDS = 3  # iterations, so that one in the middle has what the others fetch for it


@dataclass(frozen=True)
class _Fetch:
    """Of an item, behind launch `earliest` at the soonest, for launch `need`, over all rounds."""

    need: int
    earliest: int
    item: int
    bytes: int


def scheduled(recorded: RecordedIteration, problem: Problem, plan: GapPlan) -> Plan:
    """Raises ValueError where a launch needs more than there is, by the plan."""
    launches = problem.launches
    evictions: list[list[int]] = [[] for _ in range(launches)]
    for number in np.flatnonzero(plan).tolist():
        gap = problem.gaps[number]
        evictions[gap.start].append(gap.item)
    fetches: list[list[tuple[int, int]]] = [[] for _ in range(launches)]  # (item, need)
    for behind, fetch in _placed(problem, plan):
        fetches[behind % launches].append((fetch.item, fetch.need % launches))
    moves: list[PlannedMove] = []
    for launch in range(launches):
        for item in evictions[launch]:
            moves += _moves(recorded, item, launch, launch, PlannedKind.EVICT)
        for item, need in fetches[launch]:
            moves += _moves(recorded, item, need, launch, PlannedKind.PREFETCH)
    return Plan(recorded.hashes, tuple(moves))


def _placed(problem: Problem, plan: GapPlan) -> list[tuple[int, _Fetch]]:
    """The fetches for launches of the middle iteration, each with the launch that it is behind."""
    launches, memory = problem.launches, problem.link.memory_bytes
    there = np.tile(problem.occupancy(plan), _ROUNDS)
    if int(there.max(initial=0)) > memory:
        raise ValueError("the plan needs more memory than there is")
    wanted = []
    for number in np.flatnonzero(plan).tolist():
        gap = problem.gaps[number]
        if gap.fetches:
            size = int(problem.item_bytes[gap.item])
            for round_number in range(-1, _ROUNDS):
                shift = round_number * launches
                if 0 < gap.end + shift < len(there):
                    wanted.append(
                        _Fetch(gap.end + shift, max(gap.start + shift, 0), gap.item, size)
                    )
    wanted.sort(key=lambda fetch: (fetch.need, fetch.item))
    placed, before = [], 0
    for fetch in wanted:
        soonest = max(before, fetch.earliest)
        # Room has to last from behind that launch up to the need.
        short = np.flatnonzero(there[soonest + 1 : fetch.need] + fetch.bytes > memory)
        behind = soonest if len(short) == 0 else soonest + 1 + int(short[-1])
        behind = min(behind, fetch.need - 1)
        there[behind + 1 : fetch.need] += fetch.bytes
        before = behind
        if launches <= fetch.need < 2 * launches:
            placed.append((behind, fetch))
    return placed


def _moves(
    recorded: RecordedIteration, item: int, named_at: int, launch: int, kind: PlannedKind
) -> list[PlannedMove]:
    """Of the item's blocks, by the names that they have at a launch that uses them."""
    return [
        PlannedMove(launch, PlanPoint.AFTER_LAUNCH, kind, run.name, run.first, run.count)
        for run in recorded.runs(item, named_at)
    ]
