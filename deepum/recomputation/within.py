"""Rematerialisation alone: what is handed out fits the card, and nothing is moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from deepum.recomputation.backend import TraceBackend
from deepum.recomputation.contents import Item
from deepum.recomputation.following import Following
from deepum.recomputation.tape import Tape
from deepum.rematerialise.engine import BudgetError, Engine
from deepum.rematerialise.heuristics import Heuristic
from deepum.rematerialise.residency import Counters

_BUDGETS = (31 / 32, 15 / 16, 7 / 8, 3 / 4, 5 / 8, 1 / 2)  # parts of a card
_MOST_TIMES = 10  # as long as the program itself: it would hardly get on
_BEGINNING_NS = 10**9  # that this is not asked of


class OutOfMemoryError(Exception):
    """Recomputation cannot keep a program within its memory. The message says where, for people."""


class FragmentationError(OutOfMemoryError):
    """What tensors take fits the budget; blocks leave gaps, with which they do not fit the card. A
    smaller budget may.
    """


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


def within_card(
    card: int, heuristic: Heuristic, items: Callable[[], Iterable[Item]], others: Iterable[int] = ()
) -> list[tuple[bytes, bytes]]:
    """As `Within.run`, with the largest of _BUDGETS with which all that PyTorch's allocator holds
    fits the card, gaps among it. Raises OutOfMemoryError.
    """
    others = set(others)
    budgets = [int(card * part) for part in _BUDGETS]
    for budget in budgets:
        try:
            return list(Within(budget, heuristic, others, card=card).run(items()))
        except FragmentationError:
            if budget == budgets[-1]:
                raise
    raise AssertionError("the last budget fits, or raises")


class Within:
    """A program whose tensors take `budget` bytes at most. `others`: slots of memory that is not
    PyTorch's, which takes its part. `most_times`: what the program takes itself may be computed
    again so often. `card`: bytes that PyTorch's allocator and those may hold, with the gaps
    between blocks; None: gaps are not counted. All candidates are scored.
    """

    def __init__(
        self,
        budget: int,
        heuristic: Heuristic,
        others: Iterable[int] = (),
        most_times: int = _MOST_TIMES,
        card: int | None = None,
    ) -> None:
        tape = Tape(set(others), card)
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
        """As `Following.run`. Raises OutOfMemoryError, of gaps FragmentationError."""
        try:
            yield from self._following.run(items)
        except BudgetError as error:
            raise OutOfMemoryError(
                f"out of memory in step {self._following.step + 1}: {error.missing} bytes too few "
                f"beside {self._engine.used} of {self._engine.budget} that cannot be evicted"
            ) from None
        except MemoryError as error:
            raise FragmentationError(
                f"out of memory in step {self._following.step + 1}: PyTorch's allocator has no "
                f"room for {error}"
            ) from None
        except _ThrashingError:
            raise OutOfMemoryError(
                f"step {self._following.step + 1} computes more than {self._engine.most_times} "
                f"times what the program does again"
            ) from None
