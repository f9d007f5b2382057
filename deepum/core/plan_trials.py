"""What plans of an iteration came to when they were tried: which is kept, and whether another is
made.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from deepum.core.plan import Plan

_CLEARLY_WORSE = 1.25  # times an iteration: a trial ends at once,
FAR_WORSE = 2.0  # and at so many times, from when on a plan is followed, no other is tried
_MOST_PLANS = 2  # of an iteration: a third like them gains nothing (docs/decisions/025)
_LEAST_GAIN = 0.005  # part of an iteration that a plan has to save
_NOT_SHORTER = "iterations are not shorter with it"


@dataclass
class Outcome:
    """Of one plan: mean microseconds of an iteration before and with it. kept: it is followed on.
    reason: why there is no plan, or it is not kept. launches: of the iteration; moves: of the plan.
    """

    launches: int
    before_us: float | None = None
    with_us: float | None = None
    kept: bool = False
    reason: str | None = None
    moves: int = 0


@dataclass
class Trials:
    """Of the iterations of a run, one after the other. best: the plan that is kept so far, if any
    pays. us: an iteration with it, or without one. most_plans: of an iteration; asked: plans of
    this one that were asked for.
    """

    best: Plan | None = None
    us: float = 0.0
    outcomes: list[Outcome] = field(default_factory=list)
    most_plans: int = _MOST_PLANS
    asked: int = field(default=0, init=False)

    @property
    def latest(self) -> Outcome:
        """Of the plan that was asked for last."""
        return self.outcomes[-1]

    def begin_anew(self) -> None:
        """Another iteration is run: none of this one's plans is kept."""
        for outcome in self.outcomes:
            if outcome.kept or outcome is self.latest:
                outcome.kept = False
                outcome.reason = outcome.reason or "the iteration changed"
        self.best = None
        self.asked = 0

    def follow(self, given: Plan) -> None:
        """A plan that was given is kept until it was tried."""
        self.best = given
        launches, moves = len(given.launches), len(given.moves)
        self.outcomes.append(Outcome(launches, kept=True, moves=moves))

    def ask(self, launches: int) -> None:
        """A plan of that iteration is asked for, to be better than the best so far."""
        self.outcomes.append(Outcome(launches, self.us))
        self.asked += 1

    def refuse(self, launches: int, reason: str) -> None:
        """No plan of that iteration is asked for."""
        self.outcomes.append(Outcome(launches, reason=reason))

    def is_clearly_worse(self, us: float) -> bool:
        """An iteration that takes so long needs no second one."""
        return us > _CLEARLY_WORSE * self.us

    def judge(self, tried: Plan, with_us: float) -> None:
        """The plan that was asked for is kept if iterations are shorter with it."""
        self.latest.with_us = with_us
        if not self._pays(with_us, self.us):
            self.latest.reason = _NOT_SHORTER
            return
        for outcome in self.outcomes:
            outcome.kept = outcome is self.latest
        self.best, self.us = tried, with_us

    def judge_given(self, without_us: float) -> bool:
        """Whether the plan that was given, with which an iteration takes `us`, is kept."""
        self.latest.before_us, self.latest.with_us = without_us, self.us
        if self._pays(self.us, without_us):
            return True
        self.latest.kept, self.latest.reason = False, _NOT_SHORTER
        self.best = None
        return False

    @property
    def wants_another(self) -> bool:
        """Whether one more plan of this iteration is to be made."""
        return self.asked < self.most_plans

    def summary(self) -> list[dict[str, Any]]:
        """What became of each plan, for statistics."""
        return [asdict(one) for one in self.outcomes]

    @staticmethod
    def _pays(with_us: float, without_us: float) -> bool:
        return with_us <= (1 - _LEAST_GAIN) * without_us
