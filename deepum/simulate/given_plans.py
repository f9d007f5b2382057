"""Plans from files, checked before they are followed."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from deepum.core import Core, CoreSettings, Execute, Plan, events_of, plan_files
from deepum.errors import UsageError
from deepum.planners.outline import Outline
from deepum.simulate.policies import Policy
from deepum.sizes import size
from deepum.trace import Trace

_WANTED = "name what `deepum plan --output` or `deepum run --tune plan=FILE` wrote"


def read_plan(name: str) -> Plan:
    """Raises UsageError where the file is no plan, or one that a core cannot follow."""
    try:
        plan = plan_files.decode(Path(name).read_bytes())
        Core(CoreSettings.default()).follow_plan(plan.launches, plan.moves)
    except OSError as error:
        raise UsageError(f"plan {name}: {error.strerror}; {_WANTED}") from None
    except ValueError as error:
        raise UsageError(f"plan {name}: {error}; {_WANTED}") from None
    return plan


def following(policies: Sequence[Policy], name: str | None) -> tuple[Policy, ...]:
    """Those policies, of which the ones that plan follow the plan in that file, if any is given.
    Raises UsageError.
    """
    if name is None:
        return tuple(policies)
    if not any(one.plans for one in policies):
        raise UsageError("--plan: is for the policies planned and planned-clean; add one of them")
    plan = read_plan(name)
    return tuple(replace(one, plan=plan) if one.plans else one for one in policies)


def check(plan: Plan, workload: str, trace: Trace, memory_bytes: int) -> None:
    """Raises UsageError where the program never launches the plan's iteration as it is, and where
    the plan needs more than the card has.
    """
    launched = array("Q", (one.execution_hash for one in events_of(trace.events, Execute)))
    if not _has(launched, array("Q", plan.launches)):
        raise UsageError(
            f"the plan is of another program: {workload} never launches its "
            f"{len(plan.launches)} launches in a row; make one with `deepum plan --output`"
        )
    if plan.outline:
        try:
            outline = Outline.decode(plan.outline)
            most = int(outline.problem().occupancy(outline.plan).max())
        except ValueError as error:
            raise UsageError(f"the plan cannot be carried out: {error}; make it anew") from None
        if most > memory_bytes:
            raise UsageError(
                f"the plan cannot be carried out: it has up to {size(most)} on the card, which has "
                f"{size(memory_bytes)}; make one for that with `deepum plan --gpu-memory`"
            )


def _has(launched: array[int], iteration: array[int]) -> bool:
    """Whether it is launched whole, one launch after the other."""
    text, part, at = launched.tobytes(), iteration.tobytes(), 0
    while (at := text.find(part, at)) >= 0:
        if at % launched.itemsize == 0:
            return True
        at += 1
    return False
