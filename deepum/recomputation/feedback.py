"""The price of recomputation, found by trial: what it may cost a byte, so that steps are shortest.

Too low a price leaves the link more than it can carry, too high a price computes what would have
been moved for less. What the link takes for a byte is no measure of it by itself: a byte that
leaves and comes back crosses it twice, in most programs at different times, and beside launches it
is free. So prices are tried, a few steps each, from a fifth of the link's time a byte up or down
while steps get shorter; then smaller budgets with the best of them. The first trial has no
recomputation, and where no other is better by half a percent, that is kept. What is measured is the
host's clock, behind waits for the GPU, as a layer inside the program can.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from deepum.recomputation.priced import Priced
from deepum.recomputation.rewriting import Rewriting

FIRST = 3  # step of the first trial: before it, memory is not what it will be
SETTLE, MEASURED = 2, 1  # steps of a trial
_WINDOW = 1 / 4  # of the card: what was used since stays
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


ALONE = Setting(None)


@dataclass
class Trial:
    """`ns`: a step, infinite while it is not known."""

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


class Feedback(Priced):
    """`memory_bytes`: of the card; `link_ns`: of a byte on the link, one way; `now`: the host's
    clock, ns.
    """

    def __init__(self, memory_bytes: int, link_ns: float, now: Callable[[], float]) -> None:
        super().__init__(memory_bytes, 0.0, int(memory_bytes * _WINDOW))
        self._memory_bytes = memory_bytes
        self._link_ns = link_ns
        self._now = now
        self._search = Search()
        self._setting = ALONE
        self._times: list[float] = []
        self._done = False

    @property
    def trials(self) -> list[Trial]:
        """Those so far."""
        return self._search.trials

    def step(self, program: Rewriting, number: int) -> None:
        """A trial ends, or goes on."""
        super().step(program, number)
        self._times.append(self._now())
        if self._done or number < FIRST:
            return
        if self.trials:
            trial = self.trials[-1]
            if number - trial.begun < SETTLE + MEASURED:
                return
            trial.ns = (self._times[-1] - self._times[-1 - MEASURED]) / MEASURED
        following = self._search.next()
        if following is None:
            self._done = True
            self._set(program, self._search.best)
        else:
            self._set(program, following)
            self.trials.append(Trial(following, number))

    def end(self, program: Rewriting, number: int) -> None:
        """The steps that are measured begin and end with a wait for the GPU."""
        gone = number + 1 - self.trials[-1].begun if self.trials else 0
        if not self._done and gone in (SETTLE, SETTLE + MEASURED):
            program.synchronise()

    def _set(self, program: Rewriting, setting: Setting) -> None:
        if setting != self._setting:
            program.empty_cache()  # of what lay elsewhere under another setting
        self._setting = setting
        self.price = 0.0 if setting.price is None else PRICES[setting.price] * self._link_ns
        self.budget_bytes = int(self._memory_bytes * BUDGETS[setting.budget])
