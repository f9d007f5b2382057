"""The policy that plans, of one session: when it is asked to go on, and what it starts from."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from deepum.core import Core, Plan
from deepum.core.planned import PlannedPolicy, Planning
from deepum.daemon.background import BackgroundPlanning
from deepum.daemon.link import LinkRates, link_rates

PLANNED = "planned"  # of the setting `policy`
_POLL_SECONDS = 0.005  # between two polls


class SessionPlanning:
    """Polls the policy from the session's loop, every 5 ms at most. What goes wrong in it ends
    plans, and not the session.
    """

    def __init__(
        self,
        core: Core,
        planning: Planning,
        warn: Callable[[str], None],
        given: Plan | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """warn: gets what the report has to say. given: followed from the start. Raises ValueError
        where the core refuses it.
        """
        self._policy = PlannedPolicy(core, planning, given)
        self._warn = warn
        self._clock = clock
        self._next = 0.0
        self._missed = False  # something happened since the last poll
        self._failed = False

    def turned(self, busy: bool) -> bool:
        """After a turn of the loop, which was `busy` or had nothing to do. True where the policy
        was polled: what the core wants may have changed.
        """
        self._missed |= busy
        if self._failed or not (self._missed or self._waits) or self._clock() < self._next:
            return False
        self._missed = False
        try:
            self._policy.poll()
        except Exception as error:  # whatever it is: the program goes on without plans
            self._fail(error)
        self._next = self._clock() + _POLL_SECONDS
        return True

    @property
    def sleep_ms(self) -> int:
        """Milliseconds that the loop may sleep while there are no events; -1: for ever."""
        due = not self._failed and (self._missed or self._waits)
        return round(_POLL_SECONDS * 1000) if due else -1

    @property
    def _waits(self) -> bool:
        """A plan is being made; else nothing changes without events."""
        return self._policy.busy

    @property
    def plan(self) -> Plan | None:
        """The plan that is kept."""
        return None if self._failed else self._policy.plan

    def summary(self) -> list[dict[str, Any]]:
        """As `PlannedPolicy.summary`."""
        return self._policy.summary()

    def close(self) -> None:
        """Ends the planner, if it is at work."""
        self._policy.close()

    def _fail(self, error: Exception) -> None:
        self._failed = True
        self._policy.close()
        self._policy.core.record(0)
        self._policy.core.want_times(False)
        self._policy.core.follow_plan([], [])
        self._warn(f"no plans are made any more: {error!r}")


def session_planning(
    core: Core,
    environment: Mapping[str, str],
    warn: Callable[[str], None],
    given: Plan | None,
) -> SessionPlanning:
    """With a process that plans, for the link that the session's GPU has. Raises ValueError."""
    known: list[LinkRates] = []

    def link() -> LinkRates:
        if not known:  # the card is at work now, so that its link is not asleep
            known.append(link_rates(environment))
            if (warning := known[0].warning) is not None:
                warn(warning)
        return known[0]

    return SessionPlanning(core, BackgroundPlanning(link), warn, given)
