"""What recomputation may cost a byte, found by trial, so that steps are shortest.

Too low a price leaves the link more than it can carry, too high a price computes what would have
been moved for less. What the link takes for a byte is no measure of it by itself: a byte that
leaves and comes back crosses it twice, in most programs at different times, and beside launches it
is free. So prices are tried, a few steps each, from a fifth of the link's time a byte up or down
while steps get shorter; then smaller budgets with the best of them. The first trial has no
recomputation, and where no other is better by half a percent, that is kept. What is measured is the
host's clock, behind waits for the GPU.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

FIRST = 3  # step of the first trial: before it, memory is not what it will be
SETTLE, MEASURED = 2, 1  # steps of a trial
_BETTER = 0.995  # of the best so far
# Prices, parts of the link's time for a byte; budgets, parts of the card.
PRICES = (1 / 20, 1 / 10, 1 / 5, 1 / 2, 2)
BUDGETS = (31 / 32, 7 / 8, 3 / 4)
_FIRST_PRICE = 2
# At most, until a price and a budget are kept.
STEPS = FIRST + (SETTLE + MEASURED) * (len(PRICES) + len(BUDGETS))


@dataclass(frozen=True)
class Setting:
    """Places in PRICES, None: nothing is computed again; and in BUDGETS."""

    price: int | None
    budget: int = 0

    @property
    def of_link(self) -> float:
        """The price, a part of the link's time for a byte."""
        return 0.0 if self.price is None else PRICES[self.price]

    @property
    def of_card(self) -> float:
        """The budget, a part of the card's memory."""
        return BUDGETS[self.budget]


ALONE = Setting(None)


@dataclass
class Trial:
    """begun: number of its first step. ns: a step, infinite while it is not known."""

    setting: Setting
    begun: int
    ns: float = math.inf


class Search:
    """Which setting is tried next, by what those before took."""

    def __init__(self) -> None:
        self.trials: list[Trial] = []

    def next(self) -> Setting | None:
        """None: the best is known."""
        return self._price() or self._budget()

    @property
    def best(self) -> Setting:
        """Moving alone unless another is better by half a percent."""
        alone, *others = self.trials
        found = min(others, key=lambda trial: trial.ns, default=alone)
        return found.setting if found.ns < alone.ns * _BETTER else alone.setting

    def _known(self, setting: Setting) -> float | None:
        return next((one.ns for one in self.trials if one.setting == setting), None)

    def _price(self) -> Setting | None:
        """From the first one up while it pays; down if up did not."""
        if self._known(ALONE) is None:
            return ALONE
        climbed = False
        for way in (1, -1):
            at = _FIRST_PRICE
            while 0 <= at < len(PRICES):
                ns = self._known(Setting(at))
                if ns is None:
                    return Setting(at)
                before = self._known(Setting(at - way)) if at != _FIRST_PRICE else math.inf
                if before is not None and ns >= before * _BETTER:
                    break
                climbed = climbed or at > _FIRST_PRICE
                at += way
            if climbed:
                return None
        return None

    def _budget(self) -> Setting | None:
        """Less memory while it pays: where blocks lie leaves gaps."""
        best = self.best
        if best.price is None or best.budget + 1 == len(BUDGETS):
            return None
        smaller = Setting(best.price, best.budget + 1)
        return smaller if self._known(smaller) is None else None


class Trials:
    """The search of a program that tells its steps. setting: in force now, ALONE at first."""

    def __init__(self) -> None:
        self.setting = ALONE
        self.is_done = False
        self._search = Search()
        self._before = 0.0  # the clock at the begin of the latest step

    @property
    def trials(self) -> list[Trial]:
        """Those so far."""
        return self._search.trials

    def begin(self, number: int, now: float) -> bool:
        """Step `number`, from 0, begins at `now`, ns of the host's clock. Whether `setting` is
        another now.
        """
        before, self._before = self._before, now
        if self.is_done or number < FIRST:
            return False
        if self.trials:
            trial = self.trials[-1]
            if number - trial.begun < SETTLE + MEASURED:
                return False
            trial.ns = (now - before) / MEASURED
        following = self._search.next()
        if following is None:
            self.is_done = True
            following = self._search.best
        else:
            self.trials.append(Trial(following, number))
        was, self.setting = self.setting, following
        return following != was

    def is_measured(self, number: int) -> bool:
        """Whether the program waits for the GPU behind step `number`: a step that is measured
        begins or ends there.
        """
        gone = number + 1 - self.trials[-1].begun if self.trials else 0
        return not self.is_done and gone in (SETTLE, SETTLE + MEASURED)
