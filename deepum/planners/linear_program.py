"""A linear program, built column by column and row by row, solved by HiGHS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from deepum.errors import DeepumError

Floats = npt.NDArray[np.float64]
INFINITE = float("inf")
_TOLERANCE = 1e-4  # of the interior point method: plans are rounded anyway


def highspy() -> Any:
    """The module. Raises DeepumError without HiGHS."""
    try:
        import highspy as module
    except ImportError:
        raise DeepumError(
            "planner: highspy is missing; install it with `pip install deepum[plan]`"
        ) from None
    return module


def solver_with(options: Mapping[str, bool | float | str]) -> Any:
    """A silent solver of one thread with those options. Raises DeepumError without HiGHS."""
    solver = highspy().Highs()
    for option, value in {"output_flag": False, "threads": 1, **options}.items():
        solver.setOptionValue(option, value)
    return solver


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

    def bounds(self, column: int) -> tuple[float, float]:
        """The least and the most that a column may be."""
        return self._least[column], self._most[column]

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self._row_least), len(self._costs)

    def model(self) -> Any:
        """As HiGHS takes it. Raises DeepumError without HiGHS."""
        model = highspy().HighsLp()
        model.num_row_, model.num_col_ = self.size
        model.col_cost_ = np.array(self._costs)
        model.col_lower_, model.col_upper_ = np.array(self._least), np.array(self._most)
        model.row_lower_, model.row_upper_ = np.array(self._row_least), np.array(self._row_most)
        model.a_matrix_.format_ = highspy().MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.array([*self._row_starts, len(self._columns)])
        model.a_matrix_.index_ = np.array(self._columns)
        model.a_matrix_.value_ = np.array(self._values)
        return model

    def solve(self, seconds: float) -> Solution | None:
        """None where that time was too short. Raises DeepumError without HiGHS."""
        model = self.model()
        solver = solver_with(
            {
                "solver": "ipm",
                "run_crossover": "off",
                "ipm_optimality_tolerance": _TOLERANCE,
                "time_limit": float(seconds),
            }
        )
        solver.passModel(model)
        solver.run()
        status = highspy().HighsModelStatus
        if solver.getModelStatus() not in (
            status.kOptimal,
            status.kUnknown,  # to the tolerance of the interior point alone
        ):
            return None
        values = np.array(solver.getSolution().col_value)
        return Solution(values, float(values @ model.col_cost_))
