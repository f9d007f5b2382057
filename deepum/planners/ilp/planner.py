"""The integer program as a planner: from what the others find, by windows of operations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepum.planners.ilp.spans import Rules, SpansProgram
from deepum.planners.ilp.tracing import Grain, trace
from deepum.planners.ilp.windows import Window, Windows
from deepum.planners.planner import Incumbent, Limits, Linear, Planner, best_of
from deepum.planners.problem import Plan, Problem

_RULES = Rules(parts=True, moved=1e-3, beyond=1.0)
_TENSORS, _LEAST = 64, 512  # parts of the memory: the largest tensors, and the smallest
_OPERATIONS = 64
_WINDOW = Window(operations=8, seconds=2.0)
_SEARCHES, _TRIES = 4, 5  # of the local search that follows each solution


class Integer(Planner):
    """Begins with the linear planner's plan. Its iteration becomes a pattern of so many operations,
    with the tensors that are large enough to matter, in which transfers may span operations. What
    is near the relaxation is fixed and the rest solved; then window by window. Each better solution
    is made to fit by Belady's rule, searched around a little, and replayed.
    """

    name = "ilp"

    def __init__(self, operations: int = _OPERATIONS) -> None:
        self._operations = operations

    def incumbents(self, problem: Problem, limits: Limits) -> Iterator[Incumbent]:
        best = None
        for best in Linear().incumbents(problem, limits):
            yield best
        if best is None or best.ns <= problem.iteration.compute_ns or limits.left == 0:
            return
        for solved in self._solutions(problem, best.plan, limits):
            found = best_of(problem, self._fitting(problem, solved, limits))
            if found is not None and found.ns < best.ns:
                best = Incumbent(found.plan, found.ns, best.bound_ns)
                yield best

    def _solutions(self, problem: Problem, base: Plan, limits: Limits) -> Iterator[Plan]:
        """Plans that need not fit."""
        memory = problem.link.memory_bytes
        grain = Grain(self._operations, memory // _TENSORS, memory // _LEAST)
        traced = trace(problem, base, problem.replay(base).ends_ns, grain)
        program = SpansProgram(traced.pattern, _RULES)
        windows = Windows(program, _WINDOW)
        start, bound = program.start(traced.evicted(base)), 0.0
        near = windows.relax_and_fix(limits)
        if near is not None:
            yield traced.plan(near, base)
            start = {column: float(round(near.values[column])) for column in program.owned()}
            bound = near.bound_ns
        for solved in windows.improve(start, limits, bound):
            yield traced.plan(solved, base)

    def _fitting(self, problem: Problem, plan: Plan, limits: Limits) -> Iterator[Plan]:
        """Plans like that one, until the time is spent."""
        for bonus in (0.0, 0.5):
            made = problem.belady(preset=plan, clean_bonus=bonus)
            if made is None or limits.left == 0:
                return
            yield made
            yield problem.fill(made, np.flatnonzero(made)[::-1])
            for part in range(_SEARCHES):
                if limits.left == 0:
                    return
                made = problem.search(made, tries=_TRIES, seed=limits.seed + part)
            yield made
