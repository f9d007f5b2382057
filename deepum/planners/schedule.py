"""A plan of gaps as moves of UM blocks at launches, which a core follows.

What leaves is evicted behind its last use; not what ends, or is needed, before the replay has
copied it. Where copies are made ahead, what leaves later is copied
out behind the launch at which the replay begins to, and what leaves again before it is written
comes back with the host's copy kept. What comes back is fetched in the order of need, behind
the launch at which the replay begins to fetch it: asked for sooner, it would take the room that
launches until then need first.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from deepum.core import Plan, PlannedKind, PlannedMove, PlanPoint
from deepum.planners.problem import NOT_COPIED, NOT_FETCHED, Gap, Problem
from deepum.planners.problem import Plan as GapPlan
from deepum.planners.recorded import RecordedIteration


def scheduled(recorded: RecordedIteration, problem: Problem, plan: GapPlan) -> Plan:
    """Raises ValueError where the plan can never run."""
    launches = problem.launches
    replayed = problem.replay(plan)
    if math.isinf(replayed.ns):
        raise ValueError("the plan needs more memory than there is")
    left: dict[int, list[Gap]] = defaultdict(list)  # gaps in which something is away, by version
    for number in np.flatnonzero(plan).tolist():
        left[problem.gaps[number].version].append(problem.gaps[number])
    evicted: list[list[int]] = [[] for _ in range(launches)]  # items, by launch
    # What is needed or leaves so many launches later, likewise.
    fetched: list[list[tuple[int, int, PlannedKind]]] = [[] for _ in range(launches)]
    copied: list[list[tuple[int, int, int]]] = [[] for _ in range(launches)]  # with the writer
    for number in np.flatnonzero(plan).tolist():
        gap, behind = problem.gaps[number], int(replayed.fetched_behind[number])
        if replayed.left[number]:
            evicted[gap.start].append(gap.item)
        if behind != NOT_FETCHED:
            again = problem.link.copies_early and _leaves_again(gap, left[gap.version])
            kind = PlannedKind.DUPLICATE if again else PlannedKind.PREFETCH
            fetched[behind % launches].append((gap.end % launches - behind, gap.item, kind))
        behind = int(replayed.copied_behind[number])
        if behind != NOT_COPIED and gap is min(left[gap.version], key=_age):
            assert gap.writer is not None
            writer = gap.writer % launches
            leaves = _age(gap) - (behind - writer)
            copied[behind % launches].append((leaves, writer, gap.item))
    moves: list[PlannedMove] = []
    for launch in range(launches):
        for item in evicted[launch]:
            moves += _moves(recorded, item, launch, launch, PlannedKind.EVICT)
        for _, writer, item in sorted(copied[launch]):
            moves += _moves(recorded, item, writer, launch, PlannedKind.COPY_OUT)
        for ahead, item, kind in sorted(fetched[launch]):
            moves += _moves(recorded, item, (launch + ahead) % launches, launch, kind)
    return Plan(recorded.hashes, tuple(moves))


def _age(gap: Gap) -> int:
    """Launches from the write to the use behind which the content leaves."""
    return gap.start - (gap.writer or 0)


def _leaves_again(gap: Gap, left: Sequence[Gap]) -> bool:
    """What comes back at the gap's end leaves in another one of `left` before it is written; what
    is never written does in the next iteration.
    """
    back = gap.end - (gap.writer or 0)
    return gap.writer is None or any(_age(other) >= back for other in left)


def _moves(
    recorded: RecordedIteration, item: int, named_at: int, launch: int, kind: PlannedKind
) -> list[PlannedMove]:
    """Of the item's blocks, by the names that they have at a launch that uses them."""
    return [
        PlannedMove(launch, PlanPoint.AFTER_LAUNCH, kind, run.name, run.first, run.count)
        for run in recorded.runs(item, named_at)
    ]
