"""The price of recomputation is found by trials while the program runs
(deepum.rematerialise.trials).
"""

from __future__ import annotations

from collections.abc import Callable

from deepum.recomputation.priced import Priced
from deepum.recomputation.rewriting import Rewriting
from deepum.rematerialise.trials import Trial, Trials

_WINDOW = 1 / 4  # of the card: what was used since stays


class Feedback(Priced):
    """`memory_bytes`: of the card; `link_ns`: of a byte on the link, one way; `now`: the host's
    clock, ns.
    """

    def __init__(self, memory_bytes: int, link_ns: float, now: Callable[[], float]) -> None:
        super().__init__(memory_bytes, 0.0, int(memory_bytes * _WINDOW))
        self._memory_bytes = memory_bytes
        self._link_ns = link_ns
        self._now = now
        self._trials = Trials()

    @property
    def trials(self) -> list[Trial]:
        """Those so far."""
        return self._trials.trials

    def step(self, program: Rewriting, number: int) -> None:
        """A trial ends, or goes on."""
        super().step(program, number)
        if self._trials.begin(number, self._now()):
            program.empty_cache()  # of what lay elsewhere under another setting
        setting = self._trials.setting
        self.price = setting.of_link * self._link_ns
        self.budget_bytes = int(self._memory_bytes * setting.of_card)

    def end(self, program: Rewriting, number: int) -> None:
        """The steps that are measured begin and end with a wait for the GPU."""
        if self._trials.is_measured(number):
            program.synchronise()
