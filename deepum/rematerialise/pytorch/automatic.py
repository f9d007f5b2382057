"""`deepum.remat(budget="auto")`: what is computed again, and within what budget, is chosen by trial
on the program's steps. As long as nothing is, PyTorch's operators pass by.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from deepum.pytorch.steps import Boundaries
from deepum.rematerialise.choice import Choice, Step
from deepum.rematerialise.pytorch.card import check_unified, link_ns, memory_bytes
from deepum.rematerialise.pytorch.limits import SoftLimit
from deepum.rematerialise.pytorch.memory import existing_tensors
from deepum.rematerialise.pytorch.steps import Timer
from deepum.rematerialise.pytorch.tracker import Tracker

_MEASURED = 3  # steps of a trial: programs are irregular


@dataclass(frozen=True)
class TrialStatistics:
    """price_ns: of a byte, at most. ms: of a step with the program's usual work."""

    price_ns: float
    budget_bytes: int
    ms: float


@dataclass(frozen=True)
class ChoiceStatistics:
    """outcome: `fits`, `undecided`, `move` or `recompute`. price_ns: of a byte that computing again
    may take, 0: nothing is computed again. link_ns: of a byte; 0: it was not measured. steps: that
    were seen. decided: step in which trials ended; 0: none did. trials: the first is moving alone.
    """

    outcome: str
    price_ns: float
    link_ns: float
    card_bytes: int
    used_bytes: int
    steps: int
    decided: int
    trials: tuple[TrialStatistics, ...]


class Automatic:
    """On one device. Raises UsageError where nothing moves what is beyond it."""

    def __init__(self, device: torch.device) -> None:
        check_unified(device)
        card = memory_bytes(device)
        self.limit = SoftLimit(card)
        self._device = device
        self._timer = Timer(device)
        self._choice = Choice(card, lambda: link_ns(device), _MEASURED)
        self._boundaries = Boundaries(self._end_step)
        self._tracker: Tracker | None = None
        self._allocated = 0  # bytes so far, at the end of the latest step

    def begin(self, tracker: Tracker) -> None:
        """Operators pass by the tracker until something is to be computed again."""
        self._tracker = tracker
        tracker.backend.counts_allocated = True
        tracker.rest()
        self._boundaries.install()

    def end(self) -> None:
        """No steps are seen any more."""
        self._boundaries.remove()

    def statistics(self) -> ChoiceStatistics:
        """So far."""
        choice = self._choice
        return ChoiceStatistics(
            outcome=str(choice.outcome),
            price_ns=choice.price,
            link_ns=choice.link_ns,
            card_bytes=choice.card,
            used_bytes=self._read("peak"),
            steps=choice.steps,
            decided=choice.decided,
            trials=tuple(
                TrialStatistics(
                    one.setting.of_link * choice.link_ns,
                    int(one.setting.of_card * choice.card),
                    one.ns * choice.work / 1e6,
                )
                for one in choice.trials
            ),
        )

    def _read(self, what: str) -> int:
        """Of the allocator: bytes `allocated` so far, or at the `peak`."""
        every = torch.cuda.memory_stats_as_nested_dict(self._device)
        return int(every["allocated_bytes"]["all"][what]) if every else 0

    def _end_step(self) -> None:
        assert self._tracker is not None
        if self._timer.is_captured():
            return
        self.limit.engine.begin_step()
        before = self._allocated
        self._allocated = self._read("allocated") - self._tracker.backend.allocated
        step = Step(self._allocated - before, self._read("peak"))
        self._timer.collect()
        if (awaited := self._choice.awaited) is not None:
            self._timer.wait(awaited)
        self._timer.end(step)
        if before and self._choice.end(step):  # without `before` the first step begins
            self._apply(self._tracker)

    def _apply(self, tracker: Tracker) -> None:
        """The setting that is in force now."""
        price = self._choice.price
        self.limit.set(0.0, self._choice.budget)
        if price <= 0:
            tracker.rest()
        elif tracker.is_idle:
            tracker.resume(existing_tensors())
        self.limit.set(price, self._choice.budget)
        torch.cuda.empty_cache()  # of what lay elsewhere under another setting
