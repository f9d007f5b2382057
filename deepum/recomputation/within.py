"""Rematerialisation alone: what is handed out fits the card, and nothing is moved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deepum.recomputation.backend import TraceBackend
from deepum.recomputation.contents import Item
from deepum.recomputation.following import Following
from deepum.recomputation.tape import Tape
from deepum.rematerialise.engine import BudgetError, Engine
from deepum.rematerialise.heuristics import Heuristic
from deepum.rematerialise.residency import Counters

_MOST_TIMES = 10  # as long as the program itself: it would hardly get on
_BEGINNING_NS = 10**9  # that this is not asked of


class OutOfMemoryError(Exception):
    """Recomputation cannot keep a program within its memory. The message says where, for people."""


class _ThrashingError(Exception):
    """Hardly anything is done but computing again."""


class _Patient(Engine):
    """Gives up where the program would hardly get on."""

    most_times = _MOST_TIMES

    def make_room(self, size: int) -> None:
        super().make_room(size)
        again = self.counters.recomputed_ns
        if again > self.most_times * (self.clock - again + _BEGINNING_NS):
            raise _ThrashingError


class Within:
    """A program whose tensors take `budget` bytes at most. `others`: slots of memory that is not
    PyTorch's, which takes its part. `most_times`: what the program takes itself may be computed
    again so often. All candidates are scored.
    """

    def __init__(
        self,
        budget: int,
        heuristic: Heuristic,
        others: Iterable[int] = (),
        most_times: int = _MOST_TIMES,
    ) -> None:
        tape = Tape(set(others))
        backend = TraceBackend(tape)
        self._engine = _Patient(budget, backend, heuristic, sampling=False)
        self._engine.most_times = most_times
        self._following = Following(self._engine, backend, tape)

    @property
    def counters(self) -> Counters:
        """What was done."""
        return self._engine.counters

    @property
    def computed_ns(self) -> float:
        """Time of all launches so far, those again among them."""
        return self._engine.clock

    def run(self, items: Iterable[Item]) -> Iterator[tuple[bytes, bytes]]:
        """As `Following.run`. Raises OutOfMemoryError."""
        try:
            yield from self._following.run(items)
        except BudgetError as error:
            raise OutOfMemoryError(
                f"out of memory in step {self._following.step + 1}: {error.missing} bytes too few "
                f"beside {self._engine.used} of {self._engine.budget} that cannot be evicted"
            ) from None
        except _ThrashingError:
            raise OutOfMemoryError(
                f"step {self._following.step + 1} computes more than {self._engine.most_times} "
                f"times what the program does again"
            ) from None
