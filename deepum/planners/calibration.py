"""How much of what launches took they computed: as much as makes the replay of what the recorded run
moved take as long as that run did.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from deepum.planners.iteration import Link
from deepum.planners.problem import Plan, Problem
from deepum.planners.recorded import RecordedIteration

_LEAST = 0.25  # part of the time
_STEPS = 7  # of bisection: a part is known to 1/128 of the rest


def plan_of_run(recorded: RecordedIteration, problem: Problem) -> Plan:
    """The gaps in which items were away in the recorded run."""
    plan = problem.keep_all()
    for number, gap in enumerate(problem.gaps):
        if gap.fetches:
            plan[number] = recorded.left(gap.item, gap.end % problem.launches)
    return plan


def calibrated(recorded: RecordedIteration, link: Link, took_ns: float) -> Problem:
    """The problem of the iteration, each launch taking the same part of what it is said to take, so
    that the recorded run takes `took_ns`.
    """
    iteration = recorded.iteration

    def scaled(part: float, on: Link) -> Problem:
        return Problem(
            replace(iteration, launch_ns=tuple(part * ns for ns in iteration.launch_ns)), on
        )

    whole = scaled(1.0, link)
    moved = plan_of_run(recorded, whole)
    # The run's own plan need not fit to the byte: its room is what it takes.
    room = max(int(whole.occupancy(moved).max()), link.memory_bytes)
    link_of_run = replace(link, memory_bytes=room)
    low, high = _LEAST, 1.0
    for _ in range(_STEPS):
        part = (low + high) / 2
        problem = scaled(part, link_of_run)
        low, high = (part, high) if problem.replay(moved).ns < took_ns else (low, part)
    return scaled((low + high) / 2, link)


def leaner(problem: Problem, plan: Plan) -> Plan:
    """The plan with what may stay after all, first what ends before it is needed again and would
    be copied for nothing; the same where that takes longer.
    """
    gone = np.flatnonzero(plan)
    ends = np.array(
        [problem.gaps[number].death is not None for number in gone.tolist()], dtype=bool
    )
    with_ends_kept = problem.fill(plan, gone[ends])
    filled = problem.fill(with_ends_kept, gone[~ends][::-1])
    by_time = sorted(
        (plan, with_ends_kept, filled), key=lambda one: round(problem.replay(one).ns, -3)
    )
    best = problem.replay(by_time[0]).ns
    return next(
        one
        for one in (filled, with_ends_kept, plan)
        if problem.replay(one).ns <= best * (1 + _ALIKE)
    )


_ALIKE = 1e-3  # part of the time
