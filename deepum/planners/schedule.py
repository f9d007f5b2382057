"""A plan of gaps as moves of UM blocks at launches, which a core follows.

What leaves is evicted behind its last use. What comes back is fetched in the order of need, behind
the launch at which the replay begins to fetch it: asked for sooner, it would take the room that
launches until then need first.
"""

from __future__ import annotations

import math

import numpy as np

from deepum.core import Plan, PlannedKind, PlannedMove, PlanPoint
from deepum.planners.problem import NOT_FETCHED, Problem
from deepum.planners.problem import Plan as GapPlan
from deepum.planners.recorded import RecordedIteration


def scheduled(recorded: RecordedIteration, problem: Problem, plan: GapPlan) -> Plan:
    """Raises ValueError where the plan can never run."""
    launches = problem.launches
    replayed = problem.replay(plan)
    if math.isinf(replayed.ns):
        raise ValueError("the plan needs more memory than there is")
    evicted: list[list[int]] = [[] for _ in range(launches)]  # items, by launch
    fetched: list[list[tuple[int, int]]] = [[] for _ in range(launches)]  # (need, item) likewise
    for number in np.flatnonzero(plan).tolist():
        gap, behind = problem.gaps[number], int(replayed.fetched_behind[number])
        evicted[gap.start].append(gap.item)
        if behind != NOT_FETCHED:
            need = gap.end % launches
            fetched[behind % launches].append((need - behind, gap.item))
    moves: list[PlannedMove] = []
    for launch in range(launches):
        for item in evicted[launch]:
            moves += _moves(recorded, item, launch, launch, PlannedKind.EVICT)
        for ahead, item in sorted(fetched[launch]):
            need = (launch + ahead) % launches
            moves += _moves(recorded, item, need, launch, PlannedKind.PREFETCH)
    return Plan(recorded.hashes, tuple(moves))


def _moves(
    recorded: RecordedIteration, item: int, named_at: int, launch: int, kind: PlannedKind
) -> list[PlannedMove]:
    """Of the item's blocks, by the names that they have at a launch that uses them."""
    return [
        PlannedMove(launch, PlanPoint.AFTER_LAUNCH, kind, run.name, run.first, run.count)
        for run in recorded.runs(item, named_at)
    ]
