"""Large programs piece by piece: from a solution that works, the tensors that a window of
operations uses are planned anew, all else staying as it is (large-neighbourhood search).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from deepum.planners.ilp.program import PatternProgram, Solved
from deepum.planners.planner import Limits


@dataclass(frozen=True)
class Window:
    """operations: so many in a row. seconds: what solving it may take."""

    operations: int = 8
    seconds: float = 5.0


DEFAULT = Window()
_ALL_BUT_WHOLE = 0.02


class Windows:
    """Over the operations of a program's pattern; half of a window is in the next one, too."""

    def __init__(self, program: PatternProgram, window: Window = DEFAULT) -> None:
        self._program, self._window = program, window
        self._count = len(program.pattern)

    def relax_and_fix(self, limits: Limits) -> Solved | None:
        """A solution near the linear relaxation's: what is all but whole there is rounded and
        fixed, and the rest solved. None where that has no solution, or the time was too short.
        Raises DeepumError without HiGHS.
        """
        relaxed = self._program.relaxed(limits.left_by_clock)
        if relaxed is None or limits.left == 0:
            return None
        values = {column: float(relaxed.values[column]) for column in self._program.owned()}
        fixed = {
            column: float(round(value))
            for column, value in values.items()
            if abs(value - round(value)) < _ALL_BUT_WHOLE
        }
        found = self._program.solve(min(limits.left_by_clock, self._window.seconds), fixed=fixed)
        if found is None:
            return None
        return replace(found, bound_ns=min(relaxed.bound_ns, found.cost_ns))

    def improve(
        self, start: Mapping[int, float], limits: Limits, bound_ns: float = 0.0
    ) -> Iterator[Solved]:
        """The solution that has these whole numbers, and better ones or better bounds, each as it
        is found, until the time is spent or no window is better any longer; nothing where the start
        cannot be. bound_ns: a lower bound of any solution's cost. Raises DeepumError without HiGHS.
        """
        program = self._program
        found = program.solve(limits.left_by_clock, fixed=start)
        if found is None:
            return
        best = replace(found, bound_ns=min(bound_ns, found.cost_ns))
        yield best
        fruitless, at, windows = 0, 0, self._windows()
        while limits.left > 0 and fruitless < len(windows) and best.gap > 1e-6:
            whole = {column: round(best.values[column]) for column in program.program.integers}
            free = self._columns(windows[at % len(windows)])
            fixed = {column: whole[column] for column in program.owned() - free}
            seconds = min(limits.left_by_clock, self._window.seconds)
            found = program.solve(seconds, start=whole, fixed=fixed)
            at, fruitless = at + 1, fruitless + 1
            if found is None:
                continue
            if not fixed:
                bound_ns = max(bound_ns, found.bound_ns)
            better = found.cost_ns < best.cost_ns * (1 - 1e-6) - 1e-6
            known = best.bound_ns
            best = found if better else best
            best = replace(best, bound_ns=min(bound_ns, best.cost_ns))
            fruitless = 0 if better else fruitless
            if better or best.bound_ns > known:
                yield best

    def _windows(self) -> list[range]:
        size = self._window.operations
        if size >= self._count:
            return [range(self._count)]
        return [range(first, first + size) for first in range(0, self._count, max(size // 2, 1))]

    def _columns(self, window: range) -> set[int]:
        """Of what begins or ends in the window."""
        inside = {operation % self._count for operation in window}
        return {
            column
            for tensor, stretches in enumerate(self._program.stretches)
            for number, one in enumerate(stretches)
            if one.start in inside or one.end % self._count in inside
            for column in self._program.columns(tensor, number)
        }
