"""Beside unified memory: what is cheap to compute again leaves, and the rest is moved."""

from __future__ import annotations

from collections.abc import Iterable

from deepum.rematerialise.engine import Engine
from deepum.rematerialise.graph import Content
from deepum.rematerialise.heuristics import Priced
from deepum.rematerialise.residency import Backend
from deepum.rematerialise.window import Window

_FEW = 32  # candidates, all of which are scored


class SoftEngine(Engine):
    """The budget is what is best kept to: where nothing more is worth evicting, memory beyond it is
    taken, and unified memory moves it.

    price: nanoseconds a byte that computing again may take; 0 evicts nothing. window: bytes; what
    was used since operators used so many stays, or a program whose lasting tensors alone are beyond
    the budget would compute over and over.
    """

    def __init__(
        self,
        budget: int,
        backend: Backend,
        price: float = 0.0,
        *,
        window: int = 0,
        smallest: int = 0,
        seed: int = 0,
    ) -> None:
        self._priced = Priced(price)
        super().__init__(budget, backend, self._priced, smallest=smallest, seed=seed)
        self._window = Window(window)

    def set(self, price: float, budget: int) -> None:
        """Another price and budget from now on."""
        self._priced.price = price
        self.budget = budget

    def add(self, content: Content) -> None:
        super().add(content)
        self._window.use(content.bytes, self.clock)

    def free_locks(self, contents: Iterable[Content]) -> None:
        contents = list(contents)
        super().free_locks(contents)
        self._window.use(sum(one.bytes for one in contents), self.clock)

    def make_room(self, size: int) -> None:
        """So many bytes fit, or nothing is worth evicting."""
        if self._priced.price > 0:
            super().make_room(size)

    def _relieve(self, missing: int) -> bool:
        return False

    def _may_leave(self, content: Content) -> bool:
        return super()._may_leave(content) and content.last_use <= self._window.begin

    def _victim(self) -> Content | None:
        # Not all where those that were drawn are not worth it: memory is short all the time.
        few = len(self._evictable) <= _FEW
        return self._best(self._evictable.all() if few else self._evictable.sample(), 0.0)
