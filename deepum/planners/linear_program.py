"""A linear program, built column by column and row by row, solved by HiGHS."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from deepum.errors import DeepumError

Floats = npt.NDArray[np.float64]
INFINITE = float("inf")
_TOLERANCE = 1e-4  # of the interior point method: plans are rounded anyway


@dataclass(frozen=True)
class Solution:
    """values: of the columns; cost: their sum, each times its column's."""

    values: Floats
    cost: float


@dataclass
class LinearProgram:
    """Minimises the columns' costs within the bounds of columns and rows."""

    _costs: list[float] = field(default_factory=list)
    _least: list[float] = field(default_factory=list)
    _most: list[float] = field(default_factory=list)
    _row_least: list[float] = field(default_factory=list)
    _row_most: list[float] = field(default_factory=list)
    _row_starts: list[int] = field(default_factory=list)
    _columns: list[int] = field(default_factory=list)
    _values: list[float] = field(default_factory=list)

    def column(self, cost: float = 0.0, least: float = 0.0, most: float = INFINITE) -> int:
        """A new one; its index."""
        self._costs.append(cost)
        self._least.append(least)
        self._most.append(most)
        return len(self._costs) - 1

    def row(
        self,
        entries: Iterable[tuple[int, float]],
        least: float = -INFINITE,
        most: float = INFINITE,
    ) -> None:
        """A new one: (column, value) each."""
        self._row_starts.append(len(self._columns))
        for column, value in entries:
            self._columns.append(column)
            self._values.append(value)
        self._row_least.append(least)
        self._row_most.append(most)

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self._row_least), len(self._costs)

    def solve(self, seconds: float) -> Solution | None:
        """None where that time was too short. Raises DeepumError without HiGHS."""
        try:
            import highspy
        except ImportError:
            raise DeepumError(
                "linear planner: highspy is missing; install it with `pip install deepum[plan]`"
            ) from None
        model = highspy.HighsLp()
        model.num_row_, model.num_col_ = self.size
        model.col_cost_ = np.array(self._costs)
        model.col_lower_, model.col_upper_ = np.array(self._least), np.array(self._most)
        model.row_lower_, model.row_upper_ = np.array(self._row_least), np.array(self._row_most)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.array([*self._row_starts, len(self._columns)])
        model.a_matrix_.index_ = np.array(self._columns)
        model.a_matrix_.value_ = np.array(self._values)
        solver = highspy.Highs()  # type: ignore[no-untyped-call, unused-ignore]
        options: dict[str, bool | float | str] = {
            "output_flag": False,
            "solver": "ipm",
            "run_crossover": "off",
            "ipm_optimality_tolerance": _TOLERANCE,
            "time_limit": float(seconds),
            "threads": 1,
        }
        for option, value in options.items():
            solver.setOptionValue(option, value)
        solver.passModel(model)
        solver.run()
        if solver.getModelStatus() not in (
            highspy.HighsModelStatus.kOptimal,
            highspy.HighsModelStatus.kUnknown,  # to the tolerance of the interior point alone
        ):
            return None
        values = np.array(solver.getSolution().col_value)
        return Solution(values, float(values @ model.col_cost_))
