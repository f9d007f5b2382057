"""Settings of what recomputation may cost a byte and of a budget, and the order in which they are
tried, so that steps are shortest.

Too low a price leaves the link more than it can carry, too high a price computes what would have
been moved for less. What the link takes for a byte is no measure of it by itself: a byte that
leaves and comes back crosses it twice, in most programs at different times, and beside launches it
is free. So prices are tried, from a fifth of the link's time a byte up or down while steps get
shorter; then other budgets with the best of them, smaller or larger. The first trial has no
recomputation, and where no other is better by half a percent, that is kept.

A budget of nearly the whole card is no good start: blocks leave gaps between them, and what lies in
those has to move, whatever the price is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_BETTER = 0.995  # of the best so far
# Prices, parts of the link's time for a byte; budgets, parts of the card.
PRICES = (1 / 20, 1 / 10, 1 / 5, 1 / 2, 2)
BUDGETS = (31 / 32, 15 / 16, 7 / 8, 3 / 4)
_FIRST_PRICE, _FIRST_BUDGET = 2, 1
# At most, of settings: moving alone, and upwards or downwards from the first of each row.
MOST = 1 + (len(PRICES) - 1) + (len(BUDGETS) - 2)


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
    """ns: a step, infinite while it is not known. times: it was tried so often. spread: the slower
    trial over the faster.
    """

    setting: Setting
    ns: float = math.inf
    times: int = 0
    spread: float = 1.0


class Search:
    """Which setting is tried next, by what those before took."""

    def __init__(self) -> None:
        self.trials: list[Trial] = []

    def next(self) -> Setting | None:
        """None: the best is known."""
        return self._price() or self._budget()

    @property
    def best(self) -> Trial:
        """Moving alone unless another is better by half a percent."""
        return self._best_of(self.trials[1:])

    @property
    def confirmed(self) -> Trial:
        """The best that was tried more than once: moving alone unless it is better by more than a
        setting's trials differ.
        """
        alone = self.trials[0]
        found = self._best_of([one for one in self.trials[1:] if one.times > 1])
        spread = max(one.spread for one in self.trials)
        return found if found.ns * spread < alone.ns else alone

    def _best_of(self, trials: Sequence[Trial]) -> Trial:
        alone = self.trials[0]
        found = min(trials, key=lambda trial: trial.ns, default=alone)
        return found if found.ns < alone.ns * _BETTER else alone

    def _known(self, setting: Setting) -> float | None:
        return next((one.ns for one in self.trials if one.setting == setting), None)

    def _price(self) -> Setting | None:
        """From the first one up while it pays; down if up did not."""
        if self._known(ALONE) is None:
            return ALONE
        return self._climb([Setting(at) for at in range(len(PRICES))], _FIRST_PRICE)

    def _budget(self) -> Setting | None:
        """Smaller ones while they pay: where blocks lie leaves gaps; larger if those did not."""
        price = self.best.setting.price
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
