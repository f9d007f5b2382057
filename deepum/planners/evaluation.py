"""What a planner reaches: its best plan, carried out in a replay."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from deepum.planners.catalogue import BY_NAME
from deepum.planners.planner import Incumbent, Limits
from deepum.planners.problem import Plan, Problem


@dataclass(frozen=True)
class Evaluation:
    """Of the plan that a planner found: ns of the iteration, bytes each way, the most bytes that it
    has on the device, seconds that planning took, and the planner's own lower bound, if it has one.
    plan: itself.
    """

    planner: str
    ns: float
    in_bytes: int
    out_bytes: int
    peak_bytes: int
    seconds: float
    bound_ns: float | None
    plan: Plan = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        """All figures, without the plan."""
        document = {one.name: getattr(self, one.name) for one in fields(self)}
        del document["plan"]
        return document


def evaluate(
    problem: Problem,
    planner: str,
    limits: Limits,
    on_progress: Callable[[float, Incumbent], None] | None = None,
) -> Evaluation | None:
    """Of the planner of that name. on_progress: with the seconds so far, of each plan that is
    better than the one before. An interrupt ends planning with the best plan so far. None where it
    found no plan that can run.
    """
    began = time.monotonic()
    found: Incumbent | None = None
    try:
        for found in BY_NAME[planner]().incumbents(problem, limits):
            if on_progress is not None:
                on_progress(time.monotonic() - began, found)
    except KeyboardInterrupt:
        if found is None:
            raise
    took = time.monotonic() - began
    if found is None:
        return None
    result = problem.replay(found.plan)
    peak = int(problem.occupancy(found.plan).max())
    return Evaluation(
        planner,
        result.ns,
        result.in_bytes,
        result.out_bytes,
        peak,
        took,
        found.bound_ns,
        found.plan,
    )
