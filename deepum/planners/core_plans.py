"""From a request to a plan that a core follows: the recorded iteration as a problem, and a plan of
its gaps as moves, with the outline of what it was made of.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from deepum.core import Plan
from deepum.core.plan_requests import Request
from deepum.planners.iteration import Link
from deepum.planners.leaner import leaner
from deepum.planners.outline import Outline, Provenance
from deepum.planners.problem import Plan as GapPlan
from deepum.planners.problem import Problem
from deepum.planners.recorded import RecordedIteration
from deepum.planners.schedule import scheduled
from deepum.planners.times import launch_ns


def problem_of(request: Request) -> tuple[RecordedIteration, Problem]:
    """The iteration, with names, and what is to be planned. Raises ValueError for a request that is
    of no use.
    """
    options = request.options
    launches = np.frombuffer(request.recording.launches, "<u8").reshape(-1, 2)
    if len(launches) == 0:
        raise ValueError("recording: has no launches")
    times = launch_ns(request.times, int(launches[0][1]), len(launches)).tolist()
    recorded = RecordedIteration(request.recording, times, duplicates=options.duplicates)
    link = Link(
        options.memory_bytes, options.in_gbps, options.out_gbps, copies_early=options.duplicates
    )
    return recorded, Problem(recorded.iteration, link)


def core_plan(
    recorded: RecordedIteration, problem: Problem, plan: GapPlan, made: Provenance
) -> Plan:
    """The plan, made leaner, as moves of UM blocks. Raises ValueError where it can never run."""
    lean = leaner(problem, plan)
    items = enumerate(problem.iteration.items)
    names = tuple(
        recorded.runs(number, next(event.launch for event in item.events if not event.dies))
        for number, item in items
    )
    outline = Outline(made, problem.iteration, problem.link, lean, names)
    return replace(scheduled(recorded, problem, lean), outline=outline.encode())
