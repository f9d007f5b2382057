"""All planners, by the names that `deepum plan --planner` has for them."""

from __future__ import annotations

from collections.abc import Sequence

from deepum.planners.ilp.planner import Integer
from deepum.planners.planner import Belady, Heuristic, Linear, Planner, Pressure, Search

PLANNERS: Sequence[type[Planner]] = (Heuristic, Belady, Pressure, Linear, Search, Integer)
BY_NAME = {planner.name: planner for planner in PLANNERS}
