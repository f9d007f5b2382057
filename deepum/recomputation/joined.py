"""Rematerialisation beside moving: what is cheap to compute again for its size is evicted, and the
rest is left to unified memory. How dear that may be, and how much is handed out before anything
leaves, is found by trials while the program runs (deepum.rematerialise.trials).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from deepum.recomputation.backend import TraceBackend
from deepum.recomputation.contents import Item
from deepum.recomputation.following import Following
from deepum.recomputation.tape import Tape
from deepum.rematerialise.residency import Counters
from deepum.rematerialise.soft import WINDOW, SoftEngine
from deepum.rematerialise.trials import Trial, Trials


class Joined:
    """One program. `memory_bytes`: of the card; `link_ns`: of a byte on the link, one way; `now`:
    the host's clock, ns; `others`: slots of memory that is not PyTorch's.
    """

    def __init__(
        self,
        memory_bytes: int,
        link_ns: float,
        now: Callable[[], float],
        others: Iterable[int] = (),
    ) -> None:
        self._tape = Tape(set(others))
        backend = TraceBackend(self._tape)
        window = int(memory_bytes * WINDOW)
        self._engine = SoftEngine(memory_bytes, backend, window=window, sampling=False)
        self._following = Following(self._engine, backend, self._tape, self)
        self._memory_bytes = memory_bytes
        self._link_ns = link_ns
        self._now = now
        self._trials = Trials()
        self._is_changed = False  # the setting, with the latest step

    @property
    def trials(self) -> list[Trial]:
        """Those so far."""
        return self._trials.trials

    @property
    def counters(self) -> Counters:
        """What was done."""
        return self._engine.counters

    def run(self, items: Iterable[Item]) -> Iterator[tuple[bytes, bytes]]:
        """As `Following.run`."""
        yield from self._following.run(items)

    def begin(self, number: int) -> None:
        """A trial ends, or goes on."""
        was_changed, self._is_changed = self._is_changed, self._trials.begin(number, self._now())
        if self._is_changed or was_changed:
            # Of what lay elsewhere under another setting; a step later again, since gradients live
            # on from step to step.
            self._tape.empty_cache()
        setting = self._trials.setting
        self._engine.set(setting.of_link * self._link_ns, int(self._memory_bytes * setting.of_card))

    def end(self, number: int) -> None:
        """The steps that are measured begin and end with a wait for the GPU."""
        if self._trials.is_measured(number):
            self._tape.synchronise()
