"""Recomputed or moved, chosen while a program runs, of PyTorch's tensors as of recorded ones:
settings are tried on its steps, and what makes them shortest is kept (deepum.rematerialise.trials
says in which order).

Programs are not all regular. A step's time is taken over the work that it did, so that an
evaluation between two steps, or a longer batch, is no slower step. A trial counts by the median of
its steps; of two by the slower, or with moving alone by their mean, since its steps may take turns
at two lengths. What is best is tried once more, and counts by the slower trial; moving alone is by
then as well, and counts by the faster: so no setting wins by accident.

Times are the GPU's, between the ends of steps, which are known late: waits for the GPU around the
steps that count would make moving dearer than it is.
"""

from __future__ import annotations

import enum
import math
import statistics
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from deepum.rematerialise.trials import ALONE, MOST, Search, Setting, Trial

FIRST = (
    3  # steps before the first trial: memory, and what deepum learned, are not yet as they will be
)
SETTLE = 2  # steps of a trial that do not count
FITS = 7 / 8  # of the card: what is below is not moved, with the gaps that blocks leave
_AGAIN = 3  # trials once more: moving alone's, the best's, and the next best's if that was luck
_GROWN = 1.25  # of the memory that was used in trials: the choice is made again
_WATCHED = 9  # steps by whose median what was chosen is watched


def most_steps(measured: int) -> int:
    """Steps until a choice is made, where each step's time is known as the next one ends."""
    return FIRST + (SETTLE + measured + 1) * (MOST + _AGAIN)


@dataclass
class Step:
    """work: of the program's own, bytes that it asks for. peak: bytes of its memory at most, in
    this step or one before. ns: nanoseconds; None: not known yet.
    """

    work: int
    peak: int
    ns: float | None = None

    @property
    def pace(self) -> float:
        """Nanoseconds of a byte of work; infinite while not known."""
        return math.inf if self.ns is None else self.ns / max(1, self.work)


class Outcome(enum.StrEnum):
    """What came of it so far."""

    FITS = "fits"
    UNDECIDED = "undecided"
    MOVE = "move"
    RECOMPUTE = "recompute"


@dataclass
class _Attempt:
    """A trial that goes on, with its steps."""

    trial: Trial
    steps: list[Step] = field(default_factory=list)


class Choice:
    """card: bytes that the program may have resident. link: gives the nanoseconds of a byte on the
    link, and is asked once. measured: steps of a trial that count. setting: in force now; ALONE:
    nothing is computed again.
    """

    def __init__(self, card: int, link: Callable[[], float], measured: int) -> None:
        self.card = card
        self.setting: Setting = ALONE
        self.outcome = Outcome.FITS
        self.steps = 0
        self.peak = 0  # bytes, by the end of the latest search
        self.link_ns = 0.0
        self.work = 0  # bytes of a usual step, behind the first trial
        self.decided = 0  # step at which the latest search ended; 0: none did
        self._link = link
        self._measured = measured
        self._search = Search()
        self._attempt: _Attempt | None = None
        self._again = 0  # trials once more
        self._next_search = 0  # step before which none begins because steps got longer
        self._latest: deque[Step] = deque(maxlen=_WATCHED)

    @property
    def price(self) -> float:
        """Nanoseconds of a byte that computing again may take now."""
        return self.setting.of_link * self.link_ns

    @property
    def budget(self) -> int:
        """Bytes that tensors are best kept to now."""
        return int(self.setting.of_card * self.card)

    @property
    def trials(self) -> list[Trial]:
        """Those of the latest search; ns: of a byte of work."""
        return [one for one in self._search.trials if one.times]

    @property
    def awaited(self) -> Step | None:
        """A step whose time has to be known when the one that runs now ends: with that one the GPU
        has work while the program waits.
        """
        counted = self._counted()
        return counted[-1] if counted and counted[-1].ns is None else None

    def end(self, step: Step) -> bool:
        """A step ended. Whether another setting is in force now."""
        self.steps += 1
        was = self.setting
        if self._attempt is not None:
            self.peak = step.peak
            self._attempt.steps.append(step)
            self._try_on()
        elif self.outcome in (Outcome.FITS, Outcome.UNDECIDED):
            self._look(step)
        else:
            self._watch(step)
        return self.setting != was

    def _look(self, step: Step) -> None:
        """Whether anything is to be chosen."""
        if step.peak <= FITS * self.card:
            return
        self.outcome = Outcome.UNDECIDED
        if self.steps >= FIRST:
            self._begin_search()

    def _begin_search(self) -> None:
        if self.link_ns == 0.0:
            self.link_ns = self._link()
        self.outcome = Outcome.UNDECIDED
        self._search = Search()
        self._again = 0
        self._latest.clear()
        self._go_on()

    def _counted(self) -> list[Step]:
        """Steps of this trial that count, none while there are too few."""
        steps = self._attempt.steps if self._attempt is not None else []
        found = steps[SETTLE : SETTLE + self._measured]
        return found if len(found) == self._measured else []

    def _try_on(self) -> None:
        """A trial ends, or goes on."""
        counted = self._counted()
        if not counted or self.awaited is not None:
            return
        assert self._attempt is not None
        trial = self._attempt.trial
        paces = [one.pace for one in counted]
        if trial.setting == ALONE:
            self.work = int(statistics.median(one.work for one in counted))
            pace, of_both = statistics.median(paces), min
        else:
            pace, of_both = statistics.median_high(paces), max
        if trial.times:
            faster, slower = sorted((trial.ns, pace))
            trial.spread = slower / faster if faster > 0 else math.inf
            pace = of_both(trial.ns, pace)
        trial.ns = pace
        trial.times += 1
        self._go_on()

    def _go_on(self) -> None:
        """With another trial, or with what is best."""
        trial = self._following()
        if trial is not None:
            self._attempt = _Attempt(trial)
            self.setting = trial.setting
        else:
            self._end_search()

    def _following(self) -> Trial | None:
        """The next trial: of another setting; then moving alone's and the best's once more."""
        search = self._search
        if not self._again and (setting := search.next()) is not None:
            search.trials.append(Trial(setting))
            return search.trials[-1]
        if self._again < _AGAIN and search.best.setting != ALONE:
            for trial in (search.trials[0], search.best):
                if trial.times == 1:
                    self._again += 1
                    return trial
        return None

    def _end_search(self) -> None:
        best = self._search.best
        self._attempt = None
        self.setting = (best if best.times > 1 else self._search.confirmed).setting
        self.outcome = Outcome.MOVE if self.setting == ALONE else Outcome.RECOMPUTE
        self._next_search = self.steps + 2 * (self.steps - self.decided)
        self.decided = self.steps

    def _watch(self, step: Step) -> None:
        """A program that grew is another, and one whose steps take longer now than they did with
        moving alone.
        """
        self._latest.append(step)
        if step.peak > _GROWN * self.peak:
            self._begin_search()
        elif self.setting != ALONE and self.steps >= self._next_search:
            paces = [one.pace for one in self._latest if one.ns is not None]
            if len(paces) > _WATCHED // 2 and statistics.median(paces) > self._search.trials[0].ns:
                self._begin_search()
