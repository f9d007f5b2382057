"""The same problem with transfers that may span operations: a tensor takes its room when its fetch
begins, leaves it when its copy is done, and each direction moves what it likes within an operation.

Where the thesis's program must end a transfer with the operation that it was begun with, this one
goes on behind the next; so that its optimum is never above, and what takes longer than an operation
is hidden behind several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deepum.planners.ilp.pattern import Pattern, Stretch
from deepum.planners.ilp.program import PatternProgram
from deepum.planners.linear_program import Floats


@dataclass(frozen=True)
class Rules:
    """parts: a tensor leaves and comes back piece by piece, all of it in a stretch or nothing, and
    room is counted as operations begin; else it leaves and takes its room whole. moved: what a ns
    of transfers costs, so that the fewest bytes are best where time is to spare. beyond: what a
    byte that does not fit at an operation costs, of its transfers each way; None: all fits.
    drops_dirty: as in the thesis's form.
    """

    parts: bool = False
    moved: float = 0.0
    beyond: float | None = None
    drops_dirty: bool = False


EXACT = Rules()


@dataclass(frozen=True)
class _Steps:
    """Columns of a stretch by operation: 1 once the tensor has left, and once it has its room
    again. whole: the columns of it that are whole numbers.
    """

    whole: tuple[int, ...]
    left: dict[int, int]
    back: dict[int, int]


class SpansProgram(PatternProgram):
    """That of a pattern. Stall is what operations wait for transfers, in order."""

    def __init__(self, pattern: Pattern, rules: Rules = EXACT) -> None:
        super().__init__(pattern)
        self._rules = rules
        count = len(pattern)
        self._inward: list[list[tuple[int, float]]] = [[] for _ in range(count)]
        self._outward: list[list[tuple[int, float]]] = [[] for _ in range(count)]
        self._away: list[list[tuple[int, float]]] = [[] for _ in range(count)]
        self._alive = [0.0] * count  # bytes, all kept
        self._steps: list[list[_Steps]] = []
        for number in range(len(pattern.tensors)):
            self._tensor(number)
        self._waits = [self.program.column(1.0) for _ in range(count)]
        price = 0.0
        if rules.beyond is not None:
            each_way = 1 / pattern.link.in_gbps + 1 / pattern.link.out_gbps
            price = rules.beyond * each_way * self.unit_bytes / self.unit_ns
        self._beyond = [
            self.program.column(price, most=0.0 if rules.beyond is None else float("inf"))
            for _ in range(count)
        ]
        for operation in range(count):
            self._operation(operation)

    def evicted(self, tensor: int, stretch: int, values: Floats) -> bool:
        """Whether it leaves within the stretch."""
        return any(values[column] > 0.5 for column in self._steps[tensor][stretch].left.values())

    def columns(self, tensor: int, stretch: int) -> Sequence[int]:
        """Its steps, or whether it leaves."""
        return self._steps[tensor][stretch].whole

    def stall(self, values: Floats) -> float:
        """In ns."""
        return float(sum(values[column] for column in self._waits)) * self.unit_ns

    def beyond(self, values: Floats) -> float:
        """The most bytes beyond the memory at an operation, where that has a price."""
        return max(float(values[column]) for column in self._beyond) * self.unit_bytes

    def start(self, evicted: Mapping[tuple[int, int], bool]) -> dict[int, float]:
        """Whole numbers for tensors that leave in those stretches, by (tensor, stretch): as soon as
        they can, and back as late as they can.
        """
        values: dict[int, float] = {}
        for tensor, stretches in enumerate(self.stretches):
            for number, one in enumerate(stretches):
                steps = self._steps[tensor][number]
                leaves = evicted.get((tensor, number), False)
                if self._rules.parts:
                    values |= dict.fromkeys(steps.whole, float(leaves))
                    continue
                last = max(steps.left, default=0)
                soonest = one.start + (2 if self._copies(one) and one.writer == one.start else 1)
                leaves = leaves and (soonest < last if one.fetches else soonest <= last)
                for operation, column in steps.left.items():
                    values[column] = float(leaves and operation >= soonest)
                for operation, column in steps.back.items():
                    values[column] = float(leaves and operation == last)
        return values

    def _copies(self, one: Stretch) -> bool:
        """Whether what leaves in the stretch must be on the host."""
        dropped = self._rules.drops_dirty and not one.fetches
        return one.writer is not None and not dropped

    def _tensor(self, number: int) -> None:
        for operation in self.pattern.tensors[number].accesses:
            self._alive[operation] += float(self.pattern.tensors[number].bytes)
        stretches = self.stretches[number]
        self._steps.append([self._stretch(number, one) for one in stretches])
        count = len(self.pattern)
        for writer in sorted({one.writer % count for one in stretches if one.writer is not None}):
            self._copy(number, writer)

    def _stretch(self, number: int, one: Stretch) -> _Steps:
        """Its columns; what has left stays away until it is back."""
        program, size = self.program, float(self.pattern.tensors[number].bytes)
        left = {operation: self._step() for operation in one.inner}
        whole = tuple(left.values())
        for operation, column in left.items():
            at = operation % len(self.pattern)
            self._alive[at] += size
            self._away[at].append((column, size))
            if operation - 1 in left:
                program.row([(column, 1.0), (left[operation - 1], -1.0)], least=0.0)
        if self._rules.parts and left:
            whole = (program.binary(),)
            program.row([(left[one.inner[-1]], 1.0), (whole[0], -1.0)], 0.0, 0.0)
        if not one.fetches or not left:
            return _Steps(whole, left, {})
        if self._rules.parts:
            self._fetch_parts(number, one, left)
            return _Steps(whole, left, {})
        back = {operation: self._step() for operation in one.inner}
        self._fetch_whole(number, one, left, back)
        return _Steps((*whole, *back.values()), left, back)

    def _step(self) -> int:
        return self.program.column(most=1.0) if self._rules.parts else self.program.binary()

    def _coming(self, number: int, operation: int, before: int | None) -> int:
        """The part that has come by the end of the operation; before: by the one before."""
        time = self.pattern.in_ns(number) / self.unit_ns
        now = self.program.column(self._rules.moved * time, most=1.0)
        come = self.program.column(most=1.0)
        self._inward[operation % len(self.pattern)].append((now, time))
        earlier = [] if before is None else [(before, 1.0)]
        self.program.row([(now, 1.0), (come, -1.0), *earlier], 0.0, 0.0)
        return come

    def _fetch_parts(self, number: int, one: Stretch, left: dict[int, int]) -> None:
        """What has come has room from the next operation on."""
        size, come = float(self.pattern.tensors[number].bytes), None
        for operation, column in left.items():
            come = self._coming(number, operation, come)
            last = operation == one.inner[-1]
            self.program.row([(come, 1.0), (column, -1.0)], 0.0 if last else -1.0, 0.0)
            if not last:
                self._away[(operation + 1) % len(self.pattern)].append((come, -size))

    def _fetch_whole(
        self, number: int, one: Stretch, left: dict[int, int], back: dict[int, int]
    ) -> None:
        """What has come has room already, and all of it has by the last operation."""
        size, come = float(self.pattern.tensors[number].bytes), None
        for operation, column in back.items():
            self._away[operation % len(self.pattern)].append((column, -size))
            earlier = [(left[operation - 1], -1.0)] if operation - 1 in left else []
            self.program.row([(column, 1.0), *earlier], most=0.0)
            if operation - 1 in back:
                self.program.row([(column, 1.0), (back[operation - 1], -1.0)], least=0.0)
            come = self._coming(number, operation, come)
            last = operation == one.inner[-1]
            self.program.row([(come, 1.0), (column, -1.0)], 0.0 if last else -1.0, 0.0)
            if last:
                self.program.row([(column, 1.0), (left[operation], -1.0)], 0.0, 0.0)

    def _copy(self, number: int, writer: int) -> None:
        """What was copied since the write by the end of each operation: no less may have left at
        the next.
        """
        program, count = self.program, len(self.pattern)
        time = self.pattern.out_ns(number) / self.unit_ns
        leaving: list[tuple[int, int]] = []  # operations since the write, column
        for one, steps in zip(self.stretches[number], self._steps[number], strict=True):
            if self._copies(one) and one.writer is not None and one.writer % count == writer:
                leaving += [(o - one.writer, column) for o, column in steps.left.items()]
        # Parts may be copied within the operation that writes them.
        first = 0 if self._rules.parts else 1
        copied: dict[int, int] = {}
        for after in range(first, max((after for after, _ in leaving), default=0)):
            copied[after] = program.column(most=1.0)
            now = program.column(self._rules.moved * time, most=1.0)
            self._outward[(writer + after) % count].append((now, time))
            earlier = [(copied[after - 1], 1.0)] if after > first else []
            program.row([(now, 1.0), (copied[after], -1.0), *earlier], least=0.0)
        for after, column in leaving:
            done = [(copied[after - 1], -1.0)] if after > first else []
            program.row([(column, 1.0), *done], most=0.0)

    def _operation(self, operation: int) -> None:
        program, pattern = self.program, self.pattern
        duration = pattern.durations_ns[operation] / self.unit_ns
        for moved in (self._inward[operation], self._outward[operation]):
            program.row([*moved, (self._waits[operation], -1.0)], most=duration)
        there = [(column, -size) for column, size in self._away[operation]]
        there.append((self._beyond[operation], -self.unit_bytes))
        self.room(operation, there, self._alive[operation])
