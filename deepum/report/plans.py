"""A plan, replayed from its outline (deepum.planners.outline): when what moves, and what moves
most.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepum.core import plan_files
from deepum.planners.iteration import Event
from deepum.planners.outline import Outline
from deepum.planners.problem import Problem, Replayed
from deepum.planners.recorded import Run
from deepum.report.timeline import Floats, Integers, Records

_MOVED = np.dtype([("start_ns", "f8"), ("end_ns", "f8"), ("bytes", "f8")])


@dataclass(frozen=True)
class Content:
    """Items that are used alike. names: of their UM blocks; uses: launches that use them; away: the
    launches between which they are evicted, the second in the next iteration where it is not
    larger; bytes of all of them, and bytes that move in an iteration.
    """

    names: Sequence[Run]
    bytes: int
    uses: int
    away: Sequence[tuple[int, int]]
    in_bytes: int
    out_bytes: int


@dataclass(frozen=True)
class PlanReplay:
    """moves: of the plan. transfers, levels: as `Problem` has them, of the iteration replayed."""

    outline: Outline
    moves: int
    problem: Problem
    replayed: Replayed
    transfers: Records
    levels: Records

    def crossing(self, out: bool) -> Records:
        """Transfers in that direction: start_ns, end_ns, bytes."""
        mine = self.transfers[self.transfers["out"] == out]
        found = np.empty(len(mine), _MOVED)
        found["start_ns"], found["end_ns"] = mine["start_ns"], mine["end_ns"]
        found["bytes"] = self.problem.item_bytes[mine["item"]]
        return found

    @property
    def turns(self) -> Floats:
        """When each launch was next: the one before had ended. ns."""
        return np.concatenate([[0.0], self.replayed.ends_ns[:-1]])

    @property
    def live(self) -> Integers:
        """Bytes at each launch of content that is needed later: on the card if nothing left it."""
        return self.problem.occupancy(self.problem.keep_all())

    @property
    def used(self) -> Integers:
        """Bytes that each launch uses."""
        return self.problem.occupancy(self.problem.evict_all())

    def contents(self) -> list[Content]:
        """What moves, most first; items that are used alike are one."""
        began = self.transfers[self.transfers["start_ns"] >= 0]
        size, count = self.problem.item_bytes, len(self.problem.item_bytes)
        moved = [
            np.bincount(mine["item"], size[mine["item"]], count).astype(np.int64)
            for mine in (began[began["out"] == 0], began[began["out"] == 1])
        ]
        alike: dict[tuple[Event, ...], list[int]] = defaultdict(list)
        for number, item in enumerate(self.outline.iteration.items):
            if moved[0][number] or moved[1][number]:
                alike[item.events].append(number)
        away: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for number in np.flatnonzero(self.outline.plan).tolist():
            gap = self.problem.gaps[number]
            away[gap.item].append((gap.start, gap.end % self.problem.launches))
        found = [
            Content(
                [run for item in items for run in self.outline.names[item]],
                int(size[items].sum()),
                len({event.launch for event in events if not event.dies}),
                away[items[0]],
                int(moved[0][items].sum()),
                int(moved[1][items].sum()),
            )
            for events, items in alike.items()
        ]
        return sorted(found, key=lambda one: one.in_bytes + one.out_bytes, reverse=True)


def is_plan(data: bytes) -> bool:
    """Whether a file that begins so is one."""
    return data.startswith(plan_files.MAGIC)


def replay_plan(data: bytes) -> PlanReplay:
    """A plan file, replayed. Raises ValueError where it is damaged, has no outline, or cannot be
    carried out.
    """
    plan = plan_files.decode(data)
    if not plan.outline:
        raise ValueError("a plan without an outline of what it was made of")
    outline = Outline.decode(plan.outline)
    if len(outline.iteration.launch_ns) != len(plan.launches):
        raise ValueError("its outline is of another iteration")
    problem = outline.problem()
    return PlanReplay(
        outline,
        len(plan.moves),
        problem,
        problem.replay(outline.plan),
        problem.transfers(outline.plan),
        problem.levels(outline.plan),
    )
