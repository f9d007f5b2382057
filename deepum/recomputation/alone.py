"""Recomputation alone: what is handed out fits the card, and nothing is moved."""

from __future__ import annotations

from deepum.recomputation.priced import Priced
from deepum.recomputation.rewriting import Rewriting
from deepum.rematerialise.trials import BUDGETS

_MOST_TIMES = 10  # as long as the program itself: it would hardly get on
_BEGINNING_NS = 10**9  # that this is not asked of


class OutOfMemoryError(Exception):
    """Recomputation cannot keep a program within its memory. The message says where, for people."""


class Alone(Priced):
    """`memory_bytes`: of the card. Raises OutOfMemoryError from within `Rewriting.run`."""

    def __init__(self, memory_bytes: int) -> None:
        super().__init__(int(memory_bytes * BUDGETS[0]))

    def room(self, program: Rewriting, size: int) -> None:
        """As `Priced`; what does not fit then ends the run."""
        super().room(program, size)
        if program.allocated_bytes + size > self.budget_bytes:
            raise OutOfMemoryError(
                f"out of memory in step {program.step + 1}: {size} bytes asked for, "
                f"{program.allocated_bytes} of {self.budget_bytes} cannot be dropped"
            )
        again = program.counters.ns
        if again > _MOST_TIMES * (program.clock_ns - again + _BEGINNING_NS):
            raise OutOfMemoryError(
                f"step {program.step + 1} computes more than {_MOST_TIMES} times what the program "
                f"does again"
            )
