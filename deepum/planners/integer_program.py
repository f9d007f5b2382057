"""A linear program some of whose columns are whole numbers, solved by HiGHS's branch and bound,
which tells how far it is and can be stopped at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deepum.planners.linear_program import Floats, LinearProgram, highspy, solver_with


@dataclass(frozen=True)
class Progress:
    """Of a solver at work: seconds since it began, the best cost so far (infinite: none), and the
    lower bound of any. values: of the columns, where the best is new.
    """

    seconds: float
    cost: float
    bound: float
    values: Floats | None = None

    @property
    def gap(self) -> float:
        """Of the cost, the part above the bound; infinite without a solution."""
        if self.cost == float("inf"):
            return self.cost
        return max(0.0, self.cost - self.bound) / max(abs(self.cost), 1e-9)

    def __str__(self) -> str:
        found = "no solution" if self.cost == float("inf") else f"best {self.cost:.4g}"
        return f"{self.seconds:.1f} s: {found}, bound {self.bound:.4g}, gap {100 * self.gap:.1f} %"


# Returns whether the solver is to go on.
Watch = Callable[[Progress], bool]


@dataclass
class IntegerProgram(LinearProgram):
    """Minimises the columns' costs within the bounds of columns and rows."""

    _integers: list[int] = field(default_factory=list)

    def binary(self, cost: float = 0.0) -> int:
        """A new column that is 0 or 1; its index."""
        self._integers.append(self.column(cost, 0.0, 1.0))
        return self._integers[-1]

    @property
    def integers(self) -> list[int]:
        """The columns that are whole numbers."""
        return self._integers

    def solve_whole(
        self,
        seconds: float,
        start: Mapping[int, float] | None = None,
        fixed: Mapping[int, float] | None = None,
        watch: Watch | None = None,
    ) -> Progress | None:
        """The best solution that was found in that time, with the bound. start: values to begin
        with, of some columns; fixed: such as may not change. None where nothing was found. Raises
        DeepumError without HiGHS.
        """
        model = self.model()
        kinds = [highspy().HighsVarType.kContinuous] * self.size[1]
        for column in self._integers:
            kinds[column] = highspy().HighsVarType.kInteger
        model.integrality_ = kinds
        if fixed:
            columns, values = _columns(fixed)
            least, most = np.array(model.col_lower_), np.array(model.col_upper_)
            least[columns] = most[columns] = values
            model.col_lower_, model.col_upper_ = least, most
        solver = solver_with(
            {"time_limit": max(float(seconds), 1e-3), "mip_rel_gap": 1e-7, "mip_abs_gap": 1e-7}
        )
        solver.passModel(model)
        if start:
            columns, values = _columns(start)
            solver.setSolution(len(columns), columns, values)
        if watch is not None:
            _follow(solver, watch)
        solver.run()
        info = solver.getInfo()
        if info.primal_solution_status != highspy().SolutionStatus.kSolutionStatusFeasible:
            return None
        values = np.array(solver.getSolution().col_value)
        cost = float(info.objective_function_value)
        bound = min(float(info.mip_dual_bound), cost)
        return Progress(float(solver.getRunTime()), cost, bound, values)


def _columns(values: Mapping[int, float]) -> tuple[Any, Floats]:
    return np.array(list(values), dtype=np.int32), np.array(list(values.values()), dtype=np.float64)


def _follow(solver: Any, watch: Watch) -> None:
    """Tells `watch` of each better solution, and of the bound meanwhile, until it says to stop."""
    stopped = False

    def report(event: Any, values: Floats | None) -> None:
        nonlocal stopped
        out = event.data_out
        stopped = stopped or not watch(
            Progress(
                float(out.running_time),
                float(out.mip_primal_bound),
                float(out.mip_dual_bound),
                values,
            )
        )

    def better(event: Any) -> None:
        report(event, np.array(event.data_out.mip_solution))

    def meanwhile(event: Any) -> None:
        report(event, None)

    def stop(event: Any) -> None:
        event.interrupt(stopped)

    solver.cbMipImprovingSolution.subscribe(better)
    solver.cbMipLogging.subscribe(meanwhile)
    solver.cbMipInterrupt.subscribe(stop)
