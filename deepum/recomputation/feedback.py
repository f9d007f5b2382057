"""The price of recomputation, found by trial: what it may cost a byte, so that steps are shortest.

Too low a price leaves the link more than it can carry, too high a price computes what would have
been moved for less. What the link takes for a byte is no measure of it by itself: a byte that leaves
and comes back crosses it twice, in most programs at different times, and beside launches it is free.
So prices are tried, a few steps each, from a fifth of the link's time a byte up or down while steps
get shorter; and none at all, which is moving alone. What is measured is the host's clock between the
beginnings of steps, as a layer inside the program can.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from deepum.recomputation.priced import Priced
from deepum.recomputation.rewriting import Rewriting

FIRST = 3  # step of the first trial: before it, memory is not what it will be
SETTLE, MEASURED = 2, 1  # steps of a trial
PART = 31 / 32  # of the card, for what PyTorch hands out
_WINDOW = 1 / 4  # of the card: what was used since stays
_BETTER = 0.995  # of the best so far
# Parts of the link's time for a byte.
LADDER = (1 / 20, 1 / 10, 1 / 5, 1 / 2, 2)
_START = 2
STEPS = FIRST + (SETTLE + MEASURED) * (1 + len(LADDER))  # at most, until a price is kept


@dataclass
class Trial:
    """`place`: in LADDER, None without recomputation; `ns`: a step, None while it is not known."""

    place: int | None
    begun: int
    ns: float | None = None


@dataclass
class _Search:
    """Which price is tried next."""

    trials: list[Trial] = field(default_factory=list)

    def next(self) -> int | None:
        """The place of the price to be tried, of the best one once all are; None: no
        recomputation.
        """
        known = {trial.place: trial.ns or math.inf for trial in self.trials}
        if _START not in known:
            return _START
        for way in (1, -1):
            at = _START
            while known.get(at + way, math.inf) <= known[at] * _BETTER:
                at += way
            if 0 <= at + way < len(LADDER) and at + way not in known:
                if way == 1 or known.get(_START + 1, math.inf) > known[_START] * _BETTER:
                    return at + way
        return self.best()

    def best(self) -> int | None:
        """Moving alone unless another is better by half a percent."""
        found = self.trials[0]
        for trial in self.trials[1:]:
            if (trial.ns or math.inf) < (found.ns or math.inf) * (
                _BETTER if found.place is None else 1
            ):
                found = trial
        return found.place


class Feedback(Priced):
    """`link_ns`: of a byte on the link, one way. `now`: the host's clock, ns."""

    def __init__(self, memory_bytes: int, link_ns: float, now: Callable[[], float]) -> None:
        super().__init__(int(memory_bytes * PART), 0.0, int(memory_bytes * _WINDOW))
        self._link_ns = link_ns
        self._now = now
        self._search = _Search()
        self._times: list[float] = []
        self._done = False

    @property
    def trials(self) -> list[Trial]:
        """Those so far."""
        return self._search.trials

    @property
    def kept(self) -> int | None:
        """The place in LADDER of the price that is kept, or tried."""
        return next(
            (at for at, part in enumerate(LADDER) if self.price == part * self._link_ns), None
        )

    def step(self, program: Rewriting, number: int) -> None:
        """A trial ends, or goes on."""
        super().step(program, number)
        self._times.append(self._now())
        if self._done or number < FIRST:
            return
        if not self.trials:
            self.trials.append(Trial(None, number))
            return
        trial = self.trials[-1]
        if number - trial.begun < SETTLE + MEASURED:
            return
        trial.ns = (self._times[-1] - self._times[-1 - MEASURED]) / MEASURED
        place = self._search.next()
        self.price = 0.0 if place is None else LADDER[place] * self._link_ns
        if place in [one.place for one in self.trials]:
            self._done = True
        else:
            self.trials.append(Trial(place, number))
