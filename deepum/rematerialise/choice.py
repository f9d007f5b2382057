"""Recomputed or moved, chosen while a program runs: settings are tried on its steps, and what makes
them shortest is kept (deepum.rematerialise.trials says in which order).

Programs are not as regular as recorded ones. A step's time is taken over the work that it did, so
that an evaluation between two steps, or a longer batch, is no slower step. A setting counts by the
median of its steps and moving alone by the fastest of its own, so that no setting wins by accident;
and one that won has to do so once more, against moving alone as it is by then.
"""

from __future__ import annotations

import enum
import math
import statistics
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from deepum.rematerialise.trials import ALONE, Search, Setting, Trial

FIRST = (
    3  # steps before the first trial: memory and what deepum learned are not yet as they will be
)
SETTLE, MEASURED = 2, 3  # steps of a trial
FITS = 7 / 8  # of the card: what is below is not moved, with the gaps that blocks leave
_GROWN = 1.25  # of the memory that was used: the choice is made again
_WATCHED = 9  # steps by whose median what was chosen is watched


@dataclass
class Step:
    """work: bytes that the program's operators allocated. peak: bytes of its tensors at most, in
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

    def measured(self, wait: Callable[[Step], None]) -> list[Step] | None:
        """Those that count; None as long as there are too few, or their times are not known. Not
        waited for before one step more has begun, so that the GPU has work meanwhile.
        """
        found = self.steps[SETTLE : SETTLE + MEASURED]
        if len(found) < MEASURED:
            return None
        if found[-1].ns is None and len(self.steps) > SETTLE + MEASURED:
            wait(found[-1])
        return found if found[-1].ns is not None else None


class Choice:
    """card: bytes that the program may have resident. link: gives the nanoseconds of a byte on the
    link, and is asked once. wait: until the time of a step, and of those before it, is known.
    setting: in force now; ALONE: nothing is computed again.
    """

    def __init__(self, card: int, link: Callable[[], float], wait: Callable[[Step], None]) -> None:
        self.card = card
        self.setting: Setting = ALONE
        self.outcome = Outcome.FITS
        self.steps = 0
        self.peak = 0
        self.link_ns = 0.0
        self.work = 0  # bytes of a usual step, behind the first trial
        self._link = link
        self._wait = wait
        self._search = Search()
        self._attempt: _Attempt | None = None
        self._is_confirming = False
        self.decided = 0  # step at which the latest search ended; 0: none did
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
        return [one for one in self._search.trials if one.ns < math.inf]

    def end(self, step: Step) -> bool:
        """A step ended. Whether another setting is in force now."""
        self.steps += 1
        was = self.setting
        if self._attempt is not None:
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
            self._begin_search(step)

    def _begin_search(self, step: Step) -> None:
        if self.link_ns == 0.0:
            self.link_ns = self._link()
        self.peak = step.peak
        self.outcome = Outcome.UNDECIDED
        self._search = Search()
        self._is_confirming = False
        self._latest.clear()
        self._begin(Trial(ALONE, self.steps))
        self._search.trials.append(self._running)

    @property
    def _running(self) -> Trial:
        assert self._attempt is not None
        return self._attempt.trial

    def _begin(self, trial: Trial) -> None:
        self._attempt = _Attempt(trial)
        self.setting = trial.setting

    def _try_on(self) -> None:
        """A trial ends, or goes on."""
        assert self._attempt is not None
        measured = self._attempt.measured(self._wait)
        if measured is None:
            return
        paces = [one.pace for one in measured if one.ns is not None]
        if self._running.setting == ALONE:
            alone = self._search.trials[0]
            alone.ns = min(alone.ns, *paces)
            self.work = int(statistics.median(one.work for one in measured))
        else:
            self._running.ns = statistics.median(paces)
        following = None if self._is_confirming else self._search.next()
        if following is not None:
            self._begin(Trial(following, self.steps))
            self._search.trials.append(self._running)
        elif self._search.best != ALONE and not self._is_confirming:
            self._is_confirming = True
            self._begin(Trial(ALONE, self.steps))
        else:
            self._end_search()

    def _end_search(self) -> None:
        self._attempt = None
        self.setting = self._search.best
        self.outcome = Outcome.MOVE if self.setting == ALONE else Outcome.RECOMPUTE
        self._next_search = self.steps + 2 * (self.steps - self.decided)
        self.decided = self.steps

    def _watch(self, step: Step) -> None:
        """A program that grew is another, and one whose steps take longer now than they did with
        moving alone.
        """
        self._latest.append(step)
        if step.peak > _GROWN * self.peak:
            self._begin_search(step)
        elif self.setting != ALONE and self.steps >= self._next_search:
            paces = [one.pace for one in self._latest if one.ns is not None]
            if len(paces) > _WATCHED // 2 and statistics.median(paces) > self._search.trials[0].ns:
                self._begin_search(step)
