"""The policy that plans, in a replay: plans are made at once, and followed from the next look."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deepum.core import Core, Plan
from deepum.core.plan_requests import PlanInput, Request
from deepum.core.planned import PlannedPolicy
from deepum.errors import DeepumError
from deepum.planners.worker import planned
from deepum.simulate.policies import Policy
from deepum.simulate.replay import Watch


class ImmediatePlanning:
    """Plans within the call, on that link: GB/s (10^9)."""

    def __init__(self, in_gbps: float, out_gbps: float) -> None:
        self._link = in_gbps, out_gbps
        self._found: Plan | str | None = None

    def begin(self, asked: PlanInput) -> None:
        """As `deepum.core.planned.Planning` has it."""
        try:
            self._found = planned(Request.of(asked, *self._link))
        except (DeepumError, ValueError) as error:
            self._found = str(error)

    def poll(self) -> Plan | str | None:
        """The plan, or why there is none."""
        found, self._found = self._found, None
        return found

    def stop(self) -> None:
        """Nothing is under way."""
        self._found = None


def planning(
    policy: Policy, preset: Any, finished: Callable[[PlannedPolicy], None] | None = None
) -> Watch:
    """For `replay`: the policy on a machine with those figures. finished: gets the driver at once,
    to be asked what it did when the replay is over. A plan that the policy has is followed to the
    end, and nothing else is planned: what is simulated is that plan.
    """

    def watch(core: Core) -> Callable[[], None]:
        if policy.plan is not None:
            core.follow_plan(policy.plan.launches, policy.plan.moves)
            return lambda: None
        made = PlannedPolicy(
            core, ImmediatePlanning(float(preset.h2d_gbps), float(preset.d2h_gbps))
        )
        if finished is not None:
            finished(made)
        return made.poll

    return watch
