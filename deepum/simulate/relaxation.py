"""A lower bound that counts the room which pieces of memory take from each other: the value of the
linear program over the plans of a steady iteration (docs/planning.md). Most often the tightest.

What the driver costs beside the link is in it (`Handling`): a block takes its direction that much
longer, and both directions together do less than either would alone.
"""

from __future__ import annotations

from dataclasses import replace

from deepum.errors import DeepumError
from deepum.planners.linear_program import highspy
from deepum.planners.planner import Limits, Linear
from deepum.planners.problem import Problem
from deepum.simulate.bound import Handling
from deepum.simulate.iterations import steady_iteration
from deepum.simulate.workload import Workload

_SECONDS = 60.0  # that solving may take
_NO_HANDLING = Handling()


def linear_bound_ns(
    workload: Workload,
    machine: str,
    memory_bytes: int | None = None,
    handling: Handling = _NO_HANDLING,
) -> float | None:
    """ns of an iteration of whoever moves content by prefetches, which cost the driver that. None
    where it fits, where what its launches use is not known, and where there is no value in time.
    Raises DeepumError without HiGHS.
    """
    highspy()
    try:
        steady = steady_iteration(workload, machine, memory_bytes)
    except DeepumError:
        return None
    rates = steady.link.in_gbps, steady.link.out_gbps
    in_gbps, out_gbps = map(handling.rate, rates)
    slowed = replace(steady.link, in_gbps=in_gbps, out_gbps=out_gbps)
    problem = Problem(steady.iteration, slowed)
    if problem.fits:
        return None
    found = Linear(together=handling.together(*rates)).best(problem, Limits(_SECONDS))
    return None if found is None else found.bound_ns
