"""The policy that plans: the steady iteration is recorded, planned beside the program, followed in
a trial, and kept only where iterations are shorter with it (docs/planned.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from statistics import fmean
from typing import Any, Protocol

from deepum._core import lib
from deepum.core.engine import Core, CoreStatistics
from deepum.core.plan import Plan, Recording
from deepum.core.plan_requests import PlanInput
from deepum.core.plan_trials import FAR_WORSE, Outcome, Trials
from deepum.core.timeline import Timeline
from deepum.core.writer import UM_BLOCK_BYTES

_SETTLED_ITERATIONS = 1  # that a pattern has to be held for before it is recorded
_MEASURED_ITERATIONS = 2  # that are compared, before and with a plan
_SETTLING_ITERATIONS = 1  # with a plan, before it is measured
# An iteration is recorded anew while more becomes known of what its launches only read: by that
# part at least, and so many times at most.
_LEARNED = 0.01
_MOST_RECORDINGS = 8
# With clean pages, plans in that order, which have what is only read on the host as well, or not:
# what duplicates cost the driver is not known beforehand.
_WITH_DUPLICATES = (False, True, True)
# Of another iteration, until the plan that is kept is given up for it: an evaluation phase is over
# sooner.
_OTHER_ITERATIONS = 16


class Planning(Protocol):
    """Where plans are made, beside the program."""

    def begin(self, asked: PlanInput) -> None:
        """Asks for a plan."""

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
class PlannedPolicy:
    """Drives a core by its statistics and times: `poll` is called every now and then, whatever has
    happened. `given`: a plan from an earlier run, followed from the start, and tried against doing
    without once the iteration repeats.
    """

    core: Core
    planning: Planning
    given: Plan | None = None
    phase: Phase = field(default=Phase.LEARNING, init=False)
    _trials: Trials = field(default_factory=Trials, init=False)
    _timeline: Timeline = field(default_factory=Timeline, init=False)
    _period: int = field(default=0, init=False)
    _since: int = field(default=0, init=False)  # launch from which on is measured
    _followed: int = field(default=0, init=False)  # the latest launch when a plan began
    _recording: Recording | None = field(default=None, init=False)
    _recordings: int = field(default=0, init=False)  # that were made for the first plan,
    _known: int = field(default=0, init=False)  # and UM blocks known as only read in the latest
    _untried: Plan | None = field(default=None, init=False)  # the given one, until it was tried
    _tried: Plan | None = field(default=None, init=False)  # None: doing without `_untried`
    _other: tuple[int, int] = field(default=(0, 0), init=False)  # iteration, and launch since which
    _hopeless: set[int] = field(default_factory=set, init=False)  # iterations, by launches

    def __post_init__(self) -> None:
        if self._duplicates:
            self._trials.most_plans = len(_WITH_DUPLICATES)
        if self.given is not None:
            self._untried = self.given
            self._trials.follow(self.given)
            self._period = len(self.given.launches)
            self._follow_best()
            self.phase = Phase.FOLLOWING

    def poll(self) -> None:
        """Goes on as far as is possible now. Cheap where nothing is to be done."""
        statistics = self.core.statistics()
        if self.phase in _TIMED:
            self._timeline.extend(self.core.launch_times())
        if self._is_another(statistics):
            self._begin_anew()
        elif (go_on := _STEPS.get(self.phase)) is not None:
            go_on(self, statistics)

    @property
    def plan(self) -> Plan | None:
        """The best so far, if any pays."""
        return self._trials.best

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """Of each plan."""
        return self._trials.outcomes

    @property
    def busy(self) -> bool:
        """Whether something is under way that does not wait for the program alone."""
        return self.phase is Phase.PLANNING

    def close(self) -> None:
        """Ends what is under way."""
        self.planning.stop()

    def summary(self) -> list[dict[str, Any]]:
        """What became of each plan, for statistics."""
        return self._trials.summary()

    def _is_another(self, statistics: CoreStatistics) -> bool:
        """Another iteration is repeated now. While none is, the core goes on by itself."""
        period = statistics.iteration_launches
        if self.phase is Phase.LEARNING or period in (0, self._period):
            self._other = (0, 0)
            return False
        if self.phase is not Phase.FOLLOWING:
            return True
        if self._other[0] != period:
            self._other = (period, statistics.launches)
        return statistics.launches - self._other[1] > _OTHER_ITERATIONS * period

    def _begin_anew(self) -> None:
        if self._untried is not None and self.phase is not Phase.FOLLOWING:
            self._period = len(self._untried.launches)
            self._follow_best()
            self._end_trials(Phase.FOLLOWING)
            return
        self._trials.begin_anew()
        self._follow_best()
        self._untried = None
        self._end_trials(Phase.LEARNING)

    def _end_trials(self, phase: Phase) -> None:
        """Nothing is recorded, timed or tried any longer."""
        self.planning.stop()
        self.core.record(0)
        self.core.want_times(False)
        self._timeline.clear()
        self._recording = self._tried = None
        self._recordings = self._known = 0
        self.phase = phase

    def _learn(self, statistics: CoreStatistics) -> None:
        period = statistics.iteration_launches
        presses = statistics.allocated_bytes > statistics.capacity_bytes > 0
        if period == 0 or not presses or period in self._hopeless:
            return
        if period != self._period:
            self._period, self._since = period, statistics.launches
        elif statistics.launches - self._since >= _SETTLED_ITERATIONS * period:
            self._since = statistics.launches
            self.core.want_times(True)
            self.core.record(period)
            self.phase = Phase.MEASURING

    def _follow_on(self, statistics: CoreStatistics) -> None:
        """A plan that was given is tried once the program repeats its iteration."""
        if self._untried is not None and statistics.iteration_launches == self._period:
            self._learn(statistics)

    def _measure(self, statistics: CoreStatistics) -> None:
        recording, took = self.core.recorded(), self._took()
        if recording is None or len(took) < _MEASURED_ITERATIONS:
            return
        if self._untried is not None:
            self._trials.us = fmean(took)
            self.core.follow_plan([], [])
            self._begin_trial(None, statistics)
            return
        # The first times may be of launches before any was timed.
        if not self._timeline.knows_waits:
            self._trials.refuse(self._period, "launches do not wait for their moves")
            self._decide()
            return
        self._recording, self._trials.us = recording, fmean(took)
        if self._learns_more(recording):
            self._since = statistics.launches
            self.core.record(self._period)
        else:
            self._ask(statistics)

    @property
    def _duplicates(self) -> bool:
        """Clean pages are on."""
        return bool(self.core.settings.advice & lib.DEEPUM_ADVISE_DUPLICATE)

    def _learns_more(self, recording: Recording) -> bool:
        """With clean pages, what launches only read becomes known by and by: more was known of this
        recording than of the one before.
        """
        if not self._duplicates:
            return False
        before, self._known = self._known, recording.blocks_read
        self._recordings += 1
        return self._recordings <= _MOST_RECORDINGS and self._known > (1 + _LEARNED) * before

    def _ask(self, statistics: CoreStatistics) -> None:
        assert self._recording is not None
        duplicates = self._duplicates and _WITH_DUPLICATES[self._trials.asked]
        self._trials.ask(self._period)
        room = statistics.capacity_bytes - self.core.settings.headroom_blocks * UM_BLOCK_BYTES
        times = self._timeline.since(self._since)
        self.planning.begin(PlanInput(self._recording, times, max(room, 1), duplicates))
        self.phase = Phase.PLANNING

    def _await_plan(self, statistics: CoreStatistics) -> None:
        made = self.planning.poll()
        if isinstance(made, str):
            self._trials.latest.reason = made
            self._decide()
        elif made is not None:
            self._trials.latest.moves = len(made.moves)
            self.core.follow_plan(made.launches, made.moves)
            self._begin_trial(made, statistics)

    def _begin_trial(self, tried: Plan | None, statistics: CoreStatistics) -> None:
        self._tried, self._since = tried, statistics.launches
        self._followed = statistics.launches
        self.core.record(self._period)  # for the next plan, which may know more
        self.phase = Phase.SETTLING

    def _is_far_worse(self) -> bool:
        """Launches take so many times as long since the plan is followed, over an iteration or for
        as long as one may take.
        """
        first = self._timeline.first_from(self._followed)
        began, now = self._timeline.at(first), self._timeline.at(self._timeline.latest)
        if began is None or now is None:
            return False
        iterations = max(1.0, (self._timeline.latest - first) / self._period)
        return now - began > FAR_WORSE * self._trials.us * iterations

    def _give_up(self) -> None:
        if self._untried is not None:
            self._keep_given()
            return
        self._trials.latest.reason = f"an iteration took over {FAR_WORSE:g} times as long with it"
        self._follow_best()
        self._decide()

    def _settle(self, statistics: CoreStatistics) -> None:
        if self._is_far_worse():
            self._give_up()
            return
        # What was launched by then is known once as many launches behind it are.
        first = self._since + _SETTLING_ITERATIONS * self._period
        if self._timeline.latest >= first:
            self._since = first
            self.phase = Phase.TRYING

    def _try(self, statistics: CoreStatistics) -> None:
        if self._is_far_worse():
            self._give_up()
            return
        took = self._took()
        worse = bool(took) and self._trials.is_clearly_worse(took[0])
        if len(took) < _MEASURED_ITERATIONS and not worse:
            return
        if self._untried is not None:
            self._judge_given(fmean(took), statistics)
            return
        assert self._tried is not None
        self._trials.judge(self._tried, fmean(took))
        if self._trials.best is not self._tried:
            self._follow_best()
        if self._trials.wants_another:
            self._recording = self.core.recorded() or self._recording
            self._ask(statistics)
        else:
            self._decide()

    def _judge_given(self, without_us: float, statistics: CoreStatistics) -> None:
        """Iterations take so long without the plan that was given."""
        if self._trials.judge_given(without_us):
            self._keep_given()
            return
        self._untried = None
        self._since = statistics.launches
        self.core.record(self._period)
        self.phase = Phase.MEASURING

    def _keep_given(self) -> None:
        self._untried = None
        self._follow_best()
        self._decide()

    def _follow_best(self) -> None:
        """The core follows the plan that was the best so far, or none."""
        if self.plan is not None:
            self.core.follow_plan(self.plan.launches, self.plan.moves)
        else:
            self.core.follow_plan([], [])

    def _decide(self) -> None:
        if self.plan is None:
            self._hopeless.add(self._period)
        self._end_trials(Phase.STOPPED if self.plan is None else Phase.FOLLOWING)

    def _took(self) -> list[float]:
        first = self._timeline.quietest_from(self._since, self._period)
        return [] if first is None else self._timeline.iterations(first, self._period)


_TIMED = (Phase.MEASURING, Phase.PLANNING, Phase.SETTLING, Phase.TRYING)
_STEPS: dict[Phase, Callable[[PlannedPolicy, CoreStatistics], None]] = {
    Phase.LEARNING: PlannedPolicy._learn,
    Phase.MEASURING: PlannedPolicy._measure,
    Phase.PLANNING: PlannedPolicy._await_plan,
    Phase.SETTLING: PlannedPolicy._settle,
    Phase.TRYING: PlannedPolicy._try,
    Phase.FOLLOWING: PlannedPolicy._follow_on,
}
