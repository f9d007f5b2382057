"""The process that plans beside a running program: a request in, a plan out, at the lowest
priority. What starts it limits its threads.

    python -m deepum.planners.worker < REQUEST > PLAN
"""

from __future__ import annotations

import importlib.util
import os
import sys

import numpy as np

from deepum.core import Plan, plan_files
from deepum.core.plan_requests import Request
from deepum.errors import DeepumError
from deepum.planners.catalogue import BY_NAME
from deepum.planners.iteration import Link
from deepum.planners.leaner import leaner
from deepum.planners.planner import Limits
from deepum.planners.problem import Problem
from deepum.planners.recorded import RecordedIteration
from deepum.planners.schedule import scheduled
from deepum.planners.times import launch_ns

_LOWEST_PRIORITY = 19


def planned(request: Request) -> Plan:
    """The best plan that the planner finds. Raises DeepumError where there is none, or nothing to
    be planned, and ValueError for a request that is of no use.
    """
    options = request.options
    launches = np.frombuffer(request.recording.launches, "<u8").reshape(-1, 2)
    if len(launches) == 0:
        raise ValueError("recording: has no launches")
    first = int(launches[0][1])
    recorded = RecordedIteration(
        request.recording,
        launch_ns(request.times, first, len(launches)).tolist(),
        duplicates=options.duplicates,
    )
    link = Link(
        options.memory_bytes, options.in_gbps, options.out_gbps, copies_early=options.duplicates
    )
    problem = Problem(recorded.iteration, link)
    if problem.fits:
        raise DeepumError("the iteration fits: nothing is to be planned")
    found = BY_NAME[_planner()]().best(problem, Limits(options.seconds))
    if found is None:
        raise DeepumError("no plan was found that fits the memory")
    return scheduled(recorded, problem, leaner(problem, found.plan))


def _planner() -> str:
    """The best of which there is all that it needs."""
    return "search" if importlib.util.find_spec("highspy") is not None else "belady"


def main() -> int:
    """0, or 1 with a line on standard error."""
    os.nice(_LOWEST_PRIORITY)
    try:
        plan = planned(Request.decode(sys.stdin.buffer.read()))
    except (DeepumError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    sys.stdout.buffer.write(plan_files.encode(plan))
    return 0


if __name__ == "__main__":
    sys.exit(main())
