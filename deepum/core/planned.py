"""The policy that plans: the steady iteration is recorded, planned beside the program, followed in
a trial, and kept only where iterations are shorter with it (docs/planned.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from statistics import fmean
from typing import Any, Protocol

from deepum.core.engine import Core, CoreStatistics
from deepum.core.plan import LaunchTime, Plan, Recording
from deepum.core.timeline import Timeline
from deepum.core.writer import UM_BLOCK_BYTES

_SETTLED_ITERATIONS = 2  # that a pattern has to be held for before it is recorded
_MEASURED_ITERATIONS = 2  # that are compared, before and with a plan
_SETTLING_ITERATIONS = 1  # with a plan, before it is measured
_LEAST_GAIN = 0.005  # part of an iteration that a plan has to save
_CLEARLY_WORSE = 1.25  # times an iteration: a trial ends at once
# Parts of the memory that a plan leaves free: of the first plan of an iteration, and of the next.
_SLACKS = (0.0, 0.03)


class Planning(Protocol):
    """Where plans are made, beside the program."""

    def begin(
        self, recording: Recording, times: list[LaunchTime], memory_bytes: int
    ) -> None:
        """Asks for a plan that takes no more memory than that."""

    def poll(self) -> Plan | str | None:
        """The plan, or why there is none; None while it is being made."""

    def stop(self) -> None:
        """Ends whatever is under way."""


class Phase(Enum):
    """What the policy is about."""

    LEARNING = "the iteration is not known, or all of it fits"
    MEASURING = "the iteration is recorded, and timed"
    PLANNING = "a plan is being made"
    SETTLING = "a plan is followed for the first time"
    TRYING = "iterations with the plan are timed"
    FOLLOWING = "the plan is kept"
    STOPPED = "no plan is followed"


@dataclass
class Outcome:
    """Of one plan: mean microseconds of an iteration before and with it. kept: it is followed on.
    reason: why there is no plan, or it is not kept.
    """

    launches: int
    before_us: float | None = None
    with_us: float | None = None
    kept: bool = False
    reason: str | None = None
    moves: int = 0


@dataclass
class PlannedPolicy:
    """Drives a core by its statistics and times: `poll` is called every now and then, whatever has
    happened. `given`: a plan from an earlier run, followed from the start.
    """

    core: Core
    planning: Planning
    given: Plan | None = None
    phase: Phase = field(default=Phase.LEARNING, init=False)
    outcomes: list[Outcome] = field(default_factory=list, init=False)
    _timeline: Timeline = field(default_factory=Timeline, init=False)
    _period: int = field(default=0, init=False)
    _since: int = field(default=0, init=False)  # launch from which on is measured
    _before: list[float] = field(default_factory=list, init=False)
    _recording: Recording | None = field(default=None, init=False)
    _plan: Plan | None = field(default=None, init=False)
    _attempts: int = field(default=0, init=False)
    _stopped_periods: set[int] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        if self.given is not None:
            self._follow(self.given)
            self._period = len(self.given.launches)
            self.outcomes.append(Outcome(self._period, kept=True, moves=len(self.given.moves)))
            self.phase = Phase.FOLLOWING

    def poll(self) -> None:
        """Goes on as far as is possible now. Cheap where nothing is to be done."""
        statistics = self.core.statistics()
        if self.phase in _TIMED:
            self._timeline.extend(self.core.launch_times())
        if self.phase not in (Phase.LEARNING, Phase.STOPPED) and self._lost(statistics):
            self._begin_anew()
        elif (go_on := _STEPS.get(self.phase)) is not None:
            go_on(self, statistics)

    def close(self) -> None:
        """Ends what is under way; the plan that is kept is `plan`."""
        self.planning.stop()

    @property
    def plan(self) -> Plan | None:
        """The plan that is kept."""
        return self._plan if self.phase is Phase.FOLLOWING else None

    def summary(self) -> list[dict[str, Any]]:
        """What became of each plan, for statistics: times in microseconds an iteration."""
        return [
            {
                "launches": one.launches,
                "moves": one.moves,
                "before_us": one.before_us,
                "with_us": one.with_us,
                "kept": one.kept,
                "reason": one.reason,
            }
            for one in self.outcomes
        ]

    def _lost(self, statistics: CoreStatistics) -> bool:
        """Another iteration is repeated now. While none is, the core goes on by itself."""
        period = statistics.iteration_launches
        return period != 0 and period != self._period

    def _begin_anew(self) -> None:
        if self.outcomes and self.phase not in (Phase.FOLLOWING, Phase.MEASURING):
            self.outcomes[-1].reason = self.outcomes[-1].reason or "the iteration changed"
        self._leave(Phase.LEARNING)
        self._attempts = 0

    def _leave(self, phase: Phase) -> None:
        """Nothing is followed, recorded or timed any longer."""
        self.planning.stop()
        self.core.record(0)
        self.core.want_times(False)
        self._timeline.clear()
        if self._plan is not None:
            self.core.follow_plan([], [])
            self._plan = None
        self.phase = phase

    def _stop(self, reason: str) -> None:
        self.outcomes[-1].reason = reason
        self._stopped_periods.add(self._period)
        self._leave(Phase.STOPPED)

    def _learn(self, statistics: CoreStatistics) -> None:
        period = statistics.iteration_launches
        presses = statistics.allocated_bytes > statistics.capacity_bytes > 0
        if period == 0 or not presses or period in self._stopped_periods:
            return
        if period != self._period:
            self._period, self._since = period, statistics.launches
        elif statistics.launches - self._since >= _SETTLED_ITERATIONS * period:
            self._since = statistics.launches
            self.core.want_times(True)
            self.core.record(period)
            self.outcomes.append(Outcome(period))
            self.phase = Phase.MEASURING

    def _measure(self, statistics: CoreStatistics) -> None:
        recording = self.core.recorded()
        done = self._timed(self._since)
        if recording is not None and len(done) >= _MEASURED_ITERATIONS:
            self._before, self._recording = done, recording
            self.core.record(0)
            self._ask(statistics)

    def _ask(self, statistics: CoreStatistics) -> None:
        assert self._recording is not None
        capacity = statistics.capacity_bytes - self.core.settings.headroom_blocks * UM_BLOCK_BYTES
        memory = int(capacity * (1 - _SLACKS[self._attempts]))
        self.planning.begin(self._recording, self._timeline.known, max(memory, 1))
        self._attempts += 1
        self.phase = Phase.PLANNING

    def _await_plan(self, statistics: CoreStatistics) -> None:
        made = self.planning.poll()
        if isinstance(made, str):
            self._stop(made)
        elif made is not None:
            if self._attempts == 1:  # iterations that came while the plan was made count, too
                self._before = self._timed(self._since)
            self.outcomes[-1].before_us = fmean(self._before[-_MEASURED_ITERATIONS:])
            self.outcomes[-1].moves = len(made.moves)
            self._follow(made)
            self._since = statistics.launches
            self.phase = Phase.SETTLING

    def _follow(self, plan: Plan) -> None:
        self.core.follow_plan(plan.launches, plan.moves)
        self._plan = plan

    def _settle(self, statistics: CoreStatistics) -> None:
        # What was launched by then is known once as many launches behind it are.
        first = self._since + _SETTLING_ITERATIONS * self._period
        if self._timeline.latest >= first:
            self._since = first
            self.phase = Phase.TRYING

    def _try(self, statistics: CoreStatistics) -> None:
        outcome, done = self.outcomes[-1], self._timed(self._since)
        before = outcome.before_us
        assert before is not None
        worse = bool(done) and done[0] > _CLEARLY_WORSE * before
        if len(done) < _MEASURED_ITERATIONS and not worse:
            return
        outcome.with_us = fmean(done[:_MEASURED_ITERATIONS])
        if outcome.with_us <= (1 - _LEAST_GAIN) * before:
            outcome.kept = True
            self.core.want_times(False)
            self.phase = Phase.FOLLOWING
        elif self._attempts < len(_SLACKS):
            outcome.reason = "iterations are not shorter with it"
            self.core.follow_plan([], [])
            self._plan = None
            self.outcomes.append(Outcome(self._period))
            self._ask(statistics)
        else:
            self._stop("iterations are not shorter with it")

    def _timed(self, first: int) -> list[float]:
        return self._timeline.iterations(self._timeline.first_from(first), self._period)

    def _rest(self, statistics: CoreStatistics) -> None:
        """A plan that did not pay is not made again for the same iteration."""
        period = statistics.iteration_launches
        if period != 0 and period not in self._stopped_periods:
            self._begin_anew()


_TIMED = (Phase.MEASURING, Phase.PLANNING, Phase.SETTLING, Phase.TRYING)
_STEPS: dict[Phase, Callable[[PlannedPolicy, CoreStatistics], None]] = {
    Phase.LEARNING: PlannedPolicy._learn,  # noqa: SLF001
    Phase.MEASURING: PlannedPolicy._measure,  # noqa: SLF001
    Phase.PLANNING: PlannedPolicy._await_plan,  # noqa: SLF001
    Phase.SETTLING: PlannedPolicy._settle,  # noqa: SLF001
    Phase.TRYING: PlannedPolicy._try,  # noqa: SLF001
    Phase.STOPPED: PlannedPolicy._rest,  # noqa: SLF001
}
