"""What recomputation may cost a byte, found by trial, so that steps are shortest.

Too low a price leaves the link more than it can carry, too high a price computes what would have
been moved for less. What the link takes for a byte is no measure of it by itself: a byte that
leaves and comes back crosses it twice, in most programs at different times, and beside launches it
is free. So prices are tried, a few steps each, from a fifth of the link's time a byte up or down
while steps get shorter; then other budgets with the best of them, smaller or larger. The first
trial has no recomputation, and where no other is better by half a percent, and so once more, that
is kept. What is measured is the host's clock, behind waits for the GPU.

A budget of nearly the whole card is no good start: blocks leave gaps between them, and what lies in
those has to move, whatever the price is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

FIRST = 3  # step of the first trial: before it, memory is not what it will be
SETTLE, MEASURED = 2, 1  # steps of a trial
_BETTER = 0.995  # of the best so far
# Prices, parts of the link's time for a byte; budgets, parts of the card.
PRICES = (1 / 20, 1 / 10, 1 / 5, 1 / 2, 2)
BUDGETS = (31 / 32, 15 / 16, 7 / 8, 3 / 4)
_FIRST_PRICE, _FIRST_BUDGET = 2, 1
# At most, until a price and a budget are kept: moving alone, upwards or downwards from the first of
# each, and the best once more.
STEPS = FIRST + (SETTLE + MEASURED) * (1 + (len(PRICES) - 1) + (len(BUDGETS) - 1) + 1)


@dataclass(frozen=True)
class Setting:
    """Places in PRICES, None: nothing is computed again; and in BUDGETS."""

    price: int | None
    budget: int = _FIRST_BUDGET

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
        return self._climb([Setting(at) for at in range(len(PRICES))], _FIRST_PRICE)

    def _budget(self) -> Setting | None:
        """Smaller ones while they pay: where blocks lie leaves gaps; larger if those did not."""
        price = self.best.price
        if price is None:
            return None
        return self._climb([Setting(price, at) for at in range(len(BUDGETS))], _FIRST_BUDGET)

    def _climb(self, settings: Sequence[Setting], first: int) -> Setting | None:
        """The next of a row to try: from the first one up while steps get shorter, then down if up
        they did not; None: there is none.
        """
        climbed = False
        for way in (1, -1):
            at = first
            while 0 <= at < len(settings):
                ns = self._known(settings[at])
                if ns is None:
                    return settings[at]
                before = self._known(settings[at - way]) if at != first else math.inf
                if before is not None and ns >= before * _BETTER:
                    break
                climbed = climbed or at > first
                at += way
            if climbed:
                return None
        return None


class Trials:
    """The search of a program that tells its steps. setting: in force now, ALONE at first."""

    def __init__(self) -> None:
        self.setting = ALONE
        self.is_done = False
        self._search = Search()
        self._running: Trial | None = None
        self._again: Trial | None = None  # of the best, once more
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
        if self._running is not None:
            if number - self._running.begun < SETTLE + MEASURED:
                return False
            self._running.ns = (now - before) / MEASURED
        was, self.setting = self.setting, self._go_on(number)
        return self.setting != was

    def _go_on(self, number: int) -> Setting:
        """What is in force from that step on."""
        search = self._search
        following = search.next()
        if following is not None:
            self._running = Trial(following, number)
            search.trials.append(self._running)
            return following
        if self._again is None and search.best != ALONE:
            self._running = self._again = Trial(search.best, number)
            return search.best
        self.is_done = True
        if self._again is not None and self._again.ns >= search.trials[0].ns * _BETTER:
            return ALONE
        return search.best

    def is_measured(self, number: int) -> bool:
        """Whether the program waits for the GPU behind step `number`: a step that is measured
        begins or ends there.
        """
        gone = number + 1 - self._running.begun if self._running is not None else 0
        return not self.is_done and gone in (SETTLE, SETTLE + MEASURED)
