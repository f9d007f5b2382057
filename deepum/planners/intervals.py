"""The relaxation of planning over intervals of an iteration: how many bytes of each gap are away at
the beginning of each interval, how many are copied and fetched within it, and how long it takes.

An interval takes at least what its launches compute, what comes in and what goes out, and what
both take together where one direction slows the other down. At its
beginning no more than the memory is on the device. What comes back in an interval crosses the link
within it, and what is away was copied since it was written. Which gap is away by how much is free,
so that its value is a lower bound of an iteration of which only the beginnings of intervals have to
fit.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from deepum.planners.linear_program import LinearProgram
from deepum.planners.problem import Floats, Gap, Plan, Problem

# The program's numbers are of that part of the memory and of the computing time, so that those of
# any device are neither large nor small.
_MEMORY_UNITS, _TIME_UNITS = 64, 1000
# What a nanosecond of transfers costs beside one of time: where time is to spare, the fewest bytes
# are best, and rounding goes wrong otherwise.
_COST_OF_MOVES = 1e-3
INDEPENDENT = 2.0  # what two directions do at a time that do not slow each other down


@dataclass(frozen=True)
class Relaxed:
    """ns of the iteration, at least; by gap the bytes that are away at most at any time."""

    ns: float
    away_bytes: Floats


@dataclass(frozen=True)
class _Span:
    """A gap in intervals: those of its use before, of its end, and of the write of its content
    (None: the host has the same). Intervals of later iterations count on.
    """

    first: int
    last: int
    written: int | None
    fetches: bool
    version: int


@dataclass
class _Alike:
    """Items whose gaps are the same in intervals. gaps: of each item, by span."""

    spans: tuple[_Span, ...]
    gaps: list[tuple[int, ...]] = field(default_factory=list)
    bytes: int = 0


class Relaxation:
    """Over that many intervals of even length in a replay that ended launches at `ends_ns`.
    together: what both directions do at a time, of what one of them does on its own.
    """

    def __init__(
        self, problem: Problem, ends_ns: Floats, intervals: int, together: float = INDEPENDENT
    ) -> None:
        self._problem, self._count, self._together = problem, intervals, together
        self._unit_bytes = problem.link.memory_bytes / _MEMORY_UNITS
        self._unit_ns = problem.iteration.compute_ns / _TIME_UNITS
        self._in_rate, self._out_rate = (
            gbps * self._unit_ns / self._unit_bytes
            for gbps in (problem.link.in_gbps, problem.link.out_gbps)
        )
        starts = np.concatenate([[0.0], ends_ns[:-1]]) / ends_ns[-1]
        self._of_launch = np.minimum(starts * intervals, intervals - 1).astype(int)
        self._program = LinearProgram()
        self._classes = self._alike()
        self._rows()

    def solve(self, seconds: float) -> Relaxed | None:
        """None where that time was too short. Raises DeepumError without HiGHS."""
        solution = self._program.solve(seconds)
        if solution is None:
            return None
        values = solution.values
        away = np.zeros(len(self._problem))
        for one, columns in zip(self._classes, self._away, strict=True):
            for number, mine in enumerate(columns):
                most = max(float(values[column]) for column in mine.values()) * self._unit_bytes
                # The items of a class are full one after the other.
                for gaps in one.gaps:
                    size = float(self._bytes(gaps[number]))
                    away[gaps[number]] = min(size, most)
                    most -= away[gaps[number]]
        # What moves in the shortest iteration takes no longer than it does, in each direction.
        least = solution.cost * self._unit_ns / (1 + 2 * _COST_OF_MOVES)
        return Relaxed(max(least, self._problem.iteration.compute_ns), away)

    def _bytes(self, gap: int) -> int:
        return int(self._problem.item_bytes[self._problem.gaps[gap].item])

    def _interval(self, launch: int) -> int:
        launches = self._problem.launches
        return int(self._of_launch[launch % launches]) + self._count * (launch // launches)

    def _alike(self) -> list[_Alike]:
        of_item: dict[int, list[tuple[int, Gap]]] = defaultdict(list)
        for number, gap in enumerate(self._problem.gaps):
            of_item[gap.item].append((number, gap))
        found: dict[tuple[_Span, ...], _Alike] = {}
        for item, gaps in of_item.items():
            spans, numbers = [], []
            versions: dict[int, int] = {}
            for number, gap in gaps:
                first = self._interval(gap.start)
                # What ends between two intervals is there until the first of them has run.
                last = self._interval(gap.end if gap.death is None else gap.death)
                if first < last:
                    written = None if gap.writer is None else self._interval(gap.writer)
                    version = versions.setdefault(gap.version, len(versions))
                    spans.append(_Span(first, last, written, gap.fetches, version))
                    numbers.append(number)
            if spans:
                one = found.setdefault(tuple(spans), _Alike(tuple(spans)))
                one.gaps.append(tuple(numbers))
                one.bytes += int(self._problem.item_bytes[item])
        return list(found.values())

    def _rows(self) -> None:
        program, count = self._program, self._count
        compute = np.bincount(self._of_launch, self._problem.iteration.launch_ns, count)
        self._times = [program.column(1.0, least=float(ns) / self._unit_ns) for ns in compute]
        self._away: list[list[dict[int, int]]] = []  # by class and span: columns by interval
        self._alive = np.zeros(count)  # at the beginning of each interval, all kept
        self._kept: list[list[tuple[int, float]]] = [[] for _ in range(count)]
        self._in: list[list[tuple[int, float]]] = [[] for _ in range(count)]
        self._out: list[list[tuple[int, float]]] = [[] for _ in range(count)]
        for one in self._classes:
            self._class(one)
        for i in range(count):
            transfers = ((self._in[i], self._in_rate), (self._out[i], self._out_rate))
            program.row(self._kept[i], most=_MEMORY_UNITS - float(self._alive[i]))
            for moved, rate in transfers:
                program.row([*moved, (self._times[i], -rate)], most=0.0)
            if self._together < INDEPENDENT:
                times = [(column, 1 / rate) for moved, rate in transfers for column, _ in moved]
                program.row([*times, (self._times[i], -self._together)], most=0.0)

    def _class(self, one: _Alike) -> None:
        size, program = one.bytes / self._unit_bytes, self._program
        columns: list[dict[int, int]] = []
        for span in one.spans:
            away = {b: program.column(most=size) for b in range(span.first + 1, span.last + 1)}
            for b, column in away.items():
                self._alive[b % self._count] += size
                self._kept[b % self._count].append((column, -1.0))
                if span.fetches:
                    back = program.column(_COST_OF_MOVES / self._in_rate, most=size)
                    self._in[b % self._count].append((back, 1.0))
                    later = [(away[b + 1], 1.0)] if b + 1 in away else []
                    program.row([(back, 1.0), (column, -1.0), *later], least=0.0)
            columns.append(away)
        self._away.append(columns)
        by_version: dict[int, list[tuple[int, dict[int, int]]]] = defaultdict(list)
        for span, away in zip(one.spans, columns, strict=True):
            if span.written is not None:
                by_version[span.version].append((span.written, away))
        for gaps in by_version.values():
            self._copies(size, gaps)

    def _copies(self, size: float, gaps: list[tuple[int, dict[int, int]]]) -> None:
        """Of one version of content: what was copied by each interval's beginning, of which no less
        may be away. Its gaps in an iteration behind the write's count from the write all the same.
        """
        program = self._program
        copied: dict[int, int] = {}  # by intervals since the write
        written = gaps[0][0]
        for after in range(1, max(max(away) - since for since, away in gaps) + 1):
            copied[after] = program.column(most=size)
            now = program.column(_COST_OF_MOVES / self._out_rate, most=size)
            self._out[(written + after - 1) % self._count].append((now, 1.0))
            before = [(copied[after - 1], 1.0)] if after > 1 else []
            program.row([(now, 1.0), (copied[after], -1.0), *before], least=0.0)
        for since, away in gaps:
            for b, column in away.items():
                program.row([(copied[b - since], 1.0), (column, -1.0)], least=0.0)


def rounded(problem: Problem, relaxed: Relaxed) -> Plan:
    """Gaps of which more than half is away are evicted. The plan need not fit."""
    sizes = np.array([problem.item_bytes[gap.item] for gap in problem.gaps], dtype=np.float64)
    return (relaxed.away_bytes > sizes / 2).astype(np.uint8)
