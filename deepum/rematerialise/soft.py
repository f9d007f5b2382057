"""Beside unified memory: what is cheap to compute again leaves, and the rest is moved."""

from __future__ import annotations

import math
from collections.abc import Iterable

from deepum.rematerialise.engine import Engine
from deepum.rematerialise.graph import Content
from deepum.rematerialise.heuristics import PricedPath
from deepum.rematerialise.residency import Backend
from deepum.rematerialise.window import Window

LEAST_BYTES = 1 << 20  # of a content that is worth evicting, as MegEngine has it
WINDOW = 1 / 16  # of the card
_FEW = 32  # candidates, all of which are scored


class SoftEngine(Engine):
    """The budget is what is best kept to: where nothing more is worth evicting, memory beyond it is
    taken, and unified memory moves it.

    price: nanoseconds a byte that computing again may take; 0 evicts nothing. window: bytes; what
    was used since operations used so many stays: no policy would have moved it, and a program whose
    lasting tensors alone are beyond the budget would compute over and over. sampling: where there
    are more than a few candidates the square root of them is scored, instead of all.
    """

    def __init__(
        self,
        budget: int,
        backend: Backend,
        price: float = 0.0,
        *,
        window: int = 0,
        smallest: int = LEAST_BYTES,
        sampling: bool = True,
        seed: int = 0,
    ) -> None:
        self._priced = PricedPath(price)
        super().__init__(
            budget, backend, self._priced, smallest=smallest, sampling=sampling, seed=seed
        )
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

    def abandon(self, source: Content) -> None:
        """It goes, as it would without recomputation; what it is needed for comes back."""
        self._gives_up(source)

    def before_release(self, content: Content) -> None:
        """What would become dear without it comes back first."""
        if self._priced.price <= 0:
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
            for reader in front.pop().readers:
                for one in reader.living():
                    if one in seen or one.is_resident:
                        continue
                    seen.add(one)
                    front.append(one)
                    if one.is_held and math.isinf(self._priced.path(one, content)):
                        found.append(one)
        return found

    def _may_leave(self, content: Content) -> bool:
        return super()._may_leave(content) and content.last_use <= self._window.begin

    def _relieve(self, missing: int) -> bool:
        return False

    def _serves_more(self, content: Content) -> bool:
        # A price is asked of all that is missing on a path: what is cheap with it stays cheap.
        return False

    def _victim(self) -> Content | None:
        # Not all where those that were drawn are not worth it: memory is short all the time.
        few = not self._sampling or len(self._evictable) <= _FEW
        return self._best(self._evictable.all() if few else self._evictable.sample(), 0.0)
