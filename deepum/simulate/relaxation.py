"""A lower bound that counts the room which pieces of memory take from each other: the value of the
linear program over the plans of a steady iteration (docs/planning.md). Most often the tightest.
"""

from __future__ import annotations

from deepum.errors import DeepumError
from deepum.planners.evaluation import evaluate
from deepum.planners.linear_program import highspy
from deepum.planners.planner import Limits, Linear
from deepum.planners.problem import Problem
from deepum.simulate.iterations import steady_iteration
from deepum.simulate.workload import Workload

_SECONDS = 60.0  # that solving may take


def linear_bound_ns(
    workload: Workload, machine: str, memory_bytes: int | None = None
) -> float | None:
    """ns of an iteration. None where it fits, where what its launches use is not known, and where
    there is no value in time. Raises DeepumError without HiGHS.
    """
    highspy()
    try:
        steady = steady_iteration(workload, machine, memory_bytes)
    except DeepumError:
        return None
    problem = Problem(steady.iteration, steady.link)
    if problem.fits:
        return None
    found = evaluate(problem, Linear.name, Limits(_SECONDS))
    return None if found is None else found.bound_ns
