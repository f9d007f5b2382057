"""Planners behind one interface. Each yields better and better plans until its time is spent, so
that the best so far can be followed at once.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from deepum.planners.intervals import INDEPENDENT, Relaxation, rounded
from deepum.planners.problem import Plan, Problem

_CLEAN_BONUSES = (0.0, 0.25, 0.5, 1.0)  # iterations
_SLACKS = (0.0, 0.02, 0.05)  # parts of the memory
_MOST_BY_CLOCK = 6.0  # times a planner's seconds, however busy the machine is
_LEAST_WORK = 0.01  # part of them that shows how busy it is


@dataclass
class Limits:
    """What ends a planner: seconds of the process's own time from now on, so that a busy machine
    finds the same, or several times as many by the clock. The same seed plans the same where no
    time is short.
    """

    seconds: float = 10.0
    seed: int = 1
    _work_began: float = field(init=False)
    _clock_began: float = field(init=False)

    def __post_init__(self) -> None:
        self._work_began, self._clock_began = time.process_time(), time.monotonic()

    @property
    def left(self) -> float:
        """Seconds of the process's time; 0 when it, or the clock's, is spent."""
        if time.monotonic() - self._clock_began >= _MOST_BY_CLOCK * self.seconds:
            return 0.0
        return max(0.0, self.seconds - (time.process_time() - self._work_began))

    @property
    def left_by_clock(self) -> float:
        """Seconds that what is left takes by the clock, if the process gets as much of a processor
        as until now: for a solver that looks at the clock.
        """
        worked = time.process_time() - self._work_began
        passed = time.monotonic() - self._clock_began
        slower = passed / worked if worked > _LEAST_WORK * self.seconds else 1.0
        most = max(0.0, _MOST_BY_CLOCK * self.seconds - passed)
        return min(self.left * max(slower, 1.0), most)


@dataclass(frozen=True)
class Incumbent:
    """The best plan so far: ns of the iteration. bound_ns: of any plan's, as the planner found."""

    plan: Plan
    ns: float
    bound_ns: float | None = None


class Planner(ABC):
    """One way to plan. name: as `deepum plan --planner` has it."""

    name: str

    @abstractmethod
    def incumbents(self, problem: Problem, limits: Limits) -> Iterator[Incumbent]:
        """Each better than the one before; none where nothing was found that can run."""

    def best(self, problem: Problem, limits: Limits) -> Incumbent | None:
        """The last of them."""
        best = None
        for incumbent in self.incumbents(problem, limits):
            best = incumbent
        return best


def best_of(problem: Problem, plans: Iterable[Plan | None]) -> Incumbent | None:
    """The one of those that can run that takes the least time."""
    found: Incumbent | None = None
    for plan in plans:
        if plan is not None:
            ns = problem.replay(plan).ns
            if ns < (found.ns if found else float("inf")):
                found = Incumbent(plan, ns)
    return found


class Belady(Planner):
    """What is needed last leaves (Belady, 1966); the best of several slacks and weights of what
    needs no copy, with and without what ends soon. `preset`: gaps that leave in any case.
    """

    name = "belady"

    def __init__(self, preset: Plan | None = None) -> None:
        self._preset = preset

    def incumbents(self, problem: Problem, limits: Limits) -> Iterator[Incumbent]:
        made = (
            problem.belady(slack=slack, clean_bonus=bonus, keeps_ending=ending, preset=self._preset)
            for ending in (False, True)
            for bonus in _CLEAN_BONUSES
            for slack in _SLACKS
        )
        if found := best_of(problem, made):
            yield found


class Pressure(Planner):
    """By the pressure that a gap takes away for the time of its transfers (G10, MICRO'23); then
    what fits stays after all, the last first.
    """

    name = "g10"

    def incumbents(self, problem: Problem, limits: Limits) -> Iterator[Incumbent]:
        made = [problem.relieve_pressure(slack=slack) for slack in (0.0, 0.03)]
        plans = [plan for plan in made if plan is not None]
        if found := best_of(
            problem, [*plans, *(problem.fill(p, np.flatnonzero(p)[::-1]) for p in plans)]
        ):
            yield found


class Heuristic(Planner):
    """All leaves after each use, then what fits stays, largest tensors first (Lee's thesis)."""

    name = "heuristic"

    def incumbents(self, problem: Problem, limits: Limits) -> Iterator[Incumbent]:
        tensors = np.array([problem.iteration.items[gap.item].tensor_bytes for gap in problem.gaps])
        order = np.argsort(-tensors, kind="stable")
        if found := best_of(problem, [problem.fill(problem.evict_all(), order)]):
            yield found


class Linear(Planner):
    """The relaxation over intervals, rounded, and made to fit by Belady's rule; again with the
    times of the replayed plan. Begins with the best of others. together: as `Relaxation` has it; a
    replay knows nothing of it.
    """

    name = "linear"

    def __init__(self, rounds: int = 2, intervals: int = 32, together: float = INDEPENDENT) -> None:
        self._rounds, self._intervals, self._together = rounds, intervals, together

    def incumbents(self, problem: Problem, limits: Limits) -> Iterator[Incumbent]:
        best, bound = None, None
        for other in (Belady(), Pressure()):
            for found in other.incumbents(problem, limits):
                if best is None or found.ns < best.ns:
                    best = found
                    yield best
        for _ in range(self._rounds if best else 0):
            assert best is not None
            ends = problem.replay(best.plan).ends_ns
            relaxed = Relaxation(problem, ends, self._intervals, self._together).solve(
                limits.left_by_clock
            )
            if relaxed is None or limits.left == 0:
                return
            bound = relaxed.ns if bound is None else max(bound, relaxed.ns)
            for found in Belady(rounded(problem, relaxed)).incumbents(problem, limits):
                if found.ns < best.ns:
                    best = found
            best = Incumbent(best.plan, best.ns, bound)
            yield best


class Search(Planner):
    """Local search from the linear planner's, by `tries` at a time, until the time is spent or so
    many times in a row nothing was better.
    """

    name = "search"

    def __init__(self, tries: int = 50, patience: int = 4) -> None:
        self._tries, self._patience = tries, patience

    def incumbents(self, problem: Problem, limits: Limits) -> Iterator[Incumbent]:
        best = None
        for best in Linear().incumbents(problem, limits):
            yield best
        if best is None:
            return
        least, seed, fruitless = problem.iteration.compute_ns, limits.seed, 0
        while limits.left > 0 and fruitless < self._patience and best.ns > least:
            plan = problem.search(best.plan, tries=self._tries, seed=seed)
            ns, seed = problem.replay(plan).ns, seed + 1
            fruitless = 0 if ns < best.ns else fruitless + 1
            if ns < best.ns:
                best = Incumbent(plan, ns, best.bound_ns)
                yield best
