"""The integer program as a planner: from what the others find, by windows of operations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepum.planners.ilp.spans import Prices, SpansProgram
from deepum.planners.ilp.tracing import Grain, trace
from deepum.planners.ilp.windows import Search, Windows
from deepum.planners.planner import Belady, Incumbent, Limits, Linear, Planner, best_of
from deepum.planners.problem import Plan, Problem

_PRICES = Prices(moved=1e-3, beyond=1.0)
_TENSORS, _LEAST = 16, 512  # parts of the memory: the largest tensors, and the smallest


class Integer(Planner):
    """Begins with the linear planner's plan. Its iteration becomes a pattern of so many operations,
    with the tensors that are large enough to matter, in which transfers may span operations; each
    better solution is made to fit by Belady's rule, and replayed. Then again, finer.
    """

    name = "ilp"

    def __init__(self, operations: tuple[int, ...] = (32, 64, 128)) -> None:
        self._operations = operations

    def incumbents(self, problem: Problem, limits: Limits) -> Iterator[Incumbent]:
        best = None
        for best in Linear().incumbents(problem, limits):
            yield best
        if best is None:
            return
        for operations in self._operations:
            if limits.left == 0 or best.ns <= problem.iteration.compute_ns:
                return
            for plan in self._plans(problem, best.plan, operations, limits):
                found = best_of(problem, plan)
                if found is not None and found.ns < best.ns:
                    best = Incumbent(found.plan, found.ns, best.bound_ns)
                    yield best
            if operations >= problem.launches:
                return

    def _plans(
        self, problem: Problem, base: Plan, operations: int, limits: Limits
    ) -> Iterator[list[Plan]]:
        """For each better solution, plans of it that fit."""
        memory = problem.link.memory_bytes
        ends = problem.replay(base).ends_ns
        grain = Grain(operations, memory // _TENSORS, memory // _LEAST)
        traced = trace(problem, base, ends, grain)
        program = SpansProgram(traced.pattern, _PRICES)
        start = program.start(traced.evicted(base))
        windows = Windows(program, Search(max(operations // 8, 8)))
        for solved in windows.improve(start, limits):
            plan = traced.plan(solved, base)
            kept = [problem.belady(preset=plan), problem.belady(preset=plan, clean_bonus=0.5)]
            fits = int(problem.occupancy(plan).max()) <= memory
            made = [plan] if fits else []
            made += [one for one in kept if one is not None]
            made += [problem.fill(one, np.flatnonzero(one)[::-1]) for one in made]
            yield made
            if limits.left == 0:
                return
