"""Rematerialisation beside moving: what is cheap to compute again for its size is evicted, and the
rest is left to unified memory. How dear that may be, and how much is handed out before anything
leaves, is found by trials while the program runs (deepum.rematerialise.trials).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from deepum.recomputation.backend import TraceBackend
from deepum.recomputation.contents import Item
from deepum.recomputation.following import Following
from deepum.recomputation.tape import Tape
from deepum.rematerialise.engine import Engine
from deepum.rematerialise.graph import Content
from deepum.rematerialise.heuristics import PricedPath
from deepum.rematerialise.residency import Counters
from deepum.rematerialise.trials import Trial, Trials
from deepum.rematerialise.window import Window

LEAST_BYTES = 1 << 20  # MegEngine's
_WINDOW = 1 / 4  # of the card


class Beside(Engine):
    """The budget is what is best kept to: beyond it, what is worth it is evicted. `price`: ns a
    byte that computing again may take; 0 evicts nothing. `window_bytes`: what was used since
    launches used so much stays: no policy would have moved it, and where what outlives a step is
    larger than the card it would be computed over and over.
    """

    def __init__(
        self, budget: int, backend: TraceBackend, price: float = 0.0, window_bytes: int = 0
    ) -> None:
        self.priced = PricedPath(price)
        super().__init__(budget, backend, self.priced, smallest=LEAST_BYTES, sampling=False)
        self._trace = backend
        self._window = Window(window_bytes)
        self._passed = 0  # bytes that launches had used at the end of the latest operation

    def make_room(self, size: int) -> None:
        """So many bytes fit, or nothing is worth evicting."""
        if self.priced.price > 0:
            super().make_room(size)

    def abandon(self, source: Content) -> None:
        """It goes, as it would without recomputation; what it is needed for comes back."""
        self._gives_up(source)

    def before_release(self, content: Content) -> None:
        """What would become dear without it comes back first."""
        if self.priced.price <= 0:
            return
        locked = self.acquire([content])
        for one in self._dear_without(content):
            self.materialise(one)
        self.free_locks(locked)
        self.settle()

    def _dear_without(self, content: Content) -> list[Content]:
        """Evicted contents that are computed from it, and not cheap any more once it is gone."""
        found: list[Content] = []
        seen = {content}
        front = [content]
        while front:
            for reader in front.pop().readers():
                for one in reader.living():
                    if one in seen or one.is_resident:
                        continue
                    seen.add(one)
                    front.append(one)
                    if one.is_held and math.isinf(self.priced.path(one, content)):
                        found.append(one)
        return found

    def settle(self) -> None:
        """The window moves on."""
        super().settle()
        before, self._passed = self._passed, self._trace.passed_bytes
        self._window.use(self._passed - before, self.clock)

    def _may_leave(self, content: Content) -> bool:
        return super()._may_leave(content) and content.last_use <= self._window.begin

    def _relieve(self, missing: int) -> bool:
        return False


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
        self._engine = Beside(memory_bytes, backend, window_bytes=int(memory_bytes * _WINDOW))
        self._following = Following(self._engine, backend, self._tape, self)
        self._memory_bytes = memory_bytes
        self._link_ns = link_ns
        self._now = now
        self._trials = Trials()

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
        if self._trials.begin(number, self._now()):
            self._tape.empty_cache()  # of what lay elsewhere under another setting
        setting = self._trials.setting
        self._engine.priced.price = setting.of_link * self._link_ns
        self._engine.budget = int(self._memory_bytes * setting.of_card)

    def end(self, number: int) -> None:
        """The steps that are measured begin and end with a wait for the GPU."""
        if self._trials.is_measured(number):
            self._tape.synchronise()
