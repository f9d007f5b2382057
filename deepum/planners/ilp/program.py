"""What the formulations share: a program of a pattern, its solutions, and how they are told."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from deepum.planners.ilp.pattern import Pattern, Stretch
from deepum.planners.integer_program import IntegerProgram, Progress
from deepum.planners.linear_program import Floats

# The program's numbers are of that part of the memory and of the computing time, so that those of
# any device are neither large nor small.
MEMORY_UNITS, TIME_UNITS = 64, 1000
_UNSURE = 1e-3  # part of a relaxation's cost by which it may be too high: ten times its tolerance


@dataclass(frozen=True)
class Solved:
    """Of a pattern: stall_ns, what it takes beyond computing; cost_ns, the same with what else the
    formulation has a price for; bound_ns, the lower bound of that cost of any solution. evicted: by
    tensor, stretches (by number) in which it leaves. values: of the program's columns. seconds:
    since the solver began.
    """

    stall_ns: float
    cost_ns: float
    bound_ns: float
    evicted: tuple[tuple[bool, ...], ...]
    values: Floats
    seconds: float

    @property
    def optimal(self) -> bool:
        """Whether nothing can be better, to the solver's tolerance."""
        return self.cost_ns - self.bound_ns <= 1e-5 * max(self.cost_ns, 1.0)

    @property
    def gap(self) -> float:
        """Of the cost, the part above the bound."""
        return max(self.cost_ns - self.bound_ns, 0.0) / max(self.cost_ns, 1e-9)

    def __str__(self) -> str:
        return (
            f"{self.seconds:.1f} s: stall {self.stall_ns / 1e6:.3f} ms, bound "
            f"{self.bound_ns / 1e6:.3f} ms, gap {100 * self.gap:.1f} %"
        )


@dataclass(frozen=True)
class Relaxed:
    """values: of the columns; bound_ns: of a solution's cost."""

    values: Floats
    bound_ns: float


# Told of each better solution (None: of none) and of the bound meanwhile, in ns; returns whether
# the solver is to go on.
OnProgress = Callable[[Solved | None, float], bool]


class PatternProgram(ABC):
    """A formulation of which tensors move at which operations of a pattern."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.program = IntegerProgram()
        # In ns; patterns by hand may compute nothing.
        self.unit_ns = (pattern.compute_ns or 1.0) / TIME_UNITS
        self.unit_bytes = pattern.link.memory_bytes / MEMORY_UNITS
        self.stretches: Sequence[Sequence[Stretch]] = [
            pattern.stretches(number) for number in range(len(pattern.tensors))
        ]

    @abstractmethod
    def evicted(self, tensor: int, stretch: int, values: Floats) -> bool:
        """Whether the tensor leaves in that stretch, of a solution."""

    @abstractmethod
    def columns(self, tensor: int, stretch: int) -> Sequence[int]:
        """Those whole numbers that say what becomes of the tensor in the stretch."""

    @abstractmethod
    def stall(self, values: Floats) -> float:
        """Of a solution, in ns."""

    def solve(
        self,
        seconds: float,
        *,
        start: Mapping[int, float] | None = None,
        fixed: Mapping[int, float] | None = None,
        on_progress: OnProgress | None = None,
    ) -> Solved | None:
        """The best that was found in that time, optimal if the solver ended before; None: nothing.
        start: values of columns to begin with; fixed: such as may not change (the bound is of what
        is left, then). Raises DeepumError without HiGHS.
        """
        best: Solved | None = None

        def watch(progress: Progress) -> bool:
            nonlocal best
            if progress.values is not None:
                best = self._solved(progress)
            assert on_progress is not None
            return on_progress(best, progress.bound * self.unit_ns)

        found = self.program.solve_whole(seconds, start, fixed, watch if on_progress else None)
        return self._solved(found) if found is not None else None

    def owned(self) -> set[int]:
        """The whole numbers that say what becomes of tensors."""
        return {
            column
            for tensor, stretches in enumerate(self.stretches)
            for stretch in range(len(stretches))
            for column in self.columns(tensor, stretch)
        }

    def relaxed(self, seconds: float) -> Relaxed | None:
        """The linear relaxation: values of the columns, and a lower bound of any solution's cost.
        None where it has no solution or the time was too short. Raises DeepumError without HiGHS.
        """
        found = self.program.solve(seconds)
        if found is None:
            return None
        return Relaxed(found.values, max(found.cost * (1 - _UNSURE), 0.0) * self.unit_ns)

    def room(self, operation: int, held: Iterable[tuple[int, float]], besides: float = 0.0) -> None:
        """A row: what is held at the operation, (column, bytes) each, and so many bytes besides are
        no more than there is room for.
        """
        entries = [(column, size / self.unit_bytes) for column, size in held]
        self.program.row(entries, most=(self.pattern.room(operation) - besides) / self.unit_bytes)

    def _solved(self, found: Progress) -> Solved:
        assert found.values is not None
        values = found.values
        evicted = tuple(
            tuple(self.evicted(tensor, number, values) for number in range(len(stretches)))
            for tensor, stretches in enumerate(self.stretches)
        )
        bound = max(found.bound * self.unit_ns, 0.0)
        cost = found.cost * self.unit_ns
        return Solved(self.stall(values), cost, bound, evicted, values, found.seconds)
