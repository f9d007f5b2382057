"""The process that plans beside a running program: a request in, a plan out, at the lowest
priority. What starts it limits its threads.

    python -m deepum.planners.worker < REQUEST > PLAN
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time

from deepum.core import Plan, plan_files
from deepum.core.plan_requests import Request
from deepum.errors import DeepumError
from deepum.planners.catalogue import BY_NAME
from deepum.planners.core_plans import core_plan, problem_of
from deepum.planners.outline import Provenance
from deepum.planners.planner import Limits

_LOWEST_PRIORITY = 19


def planned(request: Request) -> Plan:
    """The best plan that the planner finds. Raises DeepumError where there is none, or nothing to
    be planned, and ValueError for a request that is of no use.
    """
    began = time.monotonic()
    recorded, problem = problem_of(request)
    if problem.fits:
        raise DeepumError("the iteration fits: nothing is to be planned")
    name = _planner()
    found = BY_NAME[name]().best(problem, Limits(request.options.seconds))
    if found is None:
        raise DeepumError("no plan was found that fits the memory")
    made = Provenance(name, time.monotonic() - began, linear_bound_ns=found.bound_ns)
    return core_plan(recorded, problem, found.plan, made)


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
