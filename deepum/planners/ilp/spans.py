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
class Prices:
    """What a solution may pay for besides waiting. moved: of a ns of transfers, so that the fewest
    bytes are best where time is to spare. beyond: of a byte that does not fit at an operation, of
    what its transfers take each way; None: all fits. drops_dirty: as in the thesis's form.
    """

    moved: float = 0.0
    beyond: float | None = None
    drops_dirty: bool = False


EXACT = Prices()


@dataclass(frozen=True)
class _Steps:
    """Columns of a stretch by operation: 1 once the tensor has left, and once it has its room
    again.
    """

    left: dict[int, int]
    back: dict[int, int]


class SpansProgram(PatternProgram):
    """That of a pattern. Stall is what operations wait for transfers, in order."""

    def __init__(self, pattern: Pattern, prices: Prices = EXACT) -> None:
        super().__init__(pattern)
        self._prices = prices
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
        if prices.beyond is not None:
            each_way = 1 / pattern.link.in_gbps + 1 / pattern.link.out_gbps
            price = prices.beyond * each_way * self.unit_bytes / self.unit_ns
        self._beyond = [
            self.program.column(price, most=0.0 if prices.beyond is None else float("inf"))
            for _ in range(count)
        ]
        for operation in range(count):
            self._operation(operation)

    def evicted(self, tensor: int, stretch: int, values: Floats) -> bool:
        """Whether it leaves within the stretch."""
        left = self._steps[tensor][stretch].left
        return any(values[column] > 0.5 for column in left.values())

    def columns(self, tensor: int, stretch: int) -> Sequence[int]:
        """Its steps."""
        steps = self._steps[tensor][stretch]
        return [*steps.left.values(), *steps.back.values()]

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
        dropped = self._prices.drops_dirty and not one.fetches
        return one.writer is not None and not dropped

    def _tensor(self, number: int) -> None:
        program, count = self.program, len(self.pattern)
        size = float(self.pattern.tensors[number].bytes)
        stretches, steps = self.stretches[number], []
        for operation in self.pattern.tensors[number].accesses:
            self._alive[operation] += size
        for one in stretches:
            # What comes back is there again at the last operation before its access.
            left = {operation: program.binary() for operation in one.inner}
            back = {o: program.binary() for o in one.inner} if one.fetches else {}
            for operation in one.inner:
                at = operation % count
                self._alive[at] += size
                self._away[at].append((left[operation], size))
                if operation - 1 in left:
                    program.row([(left[operation], 1.0), (left[operation - 1], -1.0)], least=0.0)
                if one.fetches:
                    self._away[at].append((back[operation], -size))
                    earlier = [(left[operation - 1], -1.0)] if operation - 1 in left else []
                    program.row([(back[operation], 1.0), *earlier], most=0.0)
                    if operation - 1 in back:
                        row = [(back[operation], 1.0), (back[operation - 1], -1.0)]
                        program.row(row, least=0.0)
            if back:
                self._fetch(number, one, _Steps(left, back))
            steps.append(_Steps(left, back))
        self._steps.append(steps)
        for writer in sorted({one.writer % count for one in stretches if one.writer is not None}):
            self._copy(number, writer)

    def _fetch(self, number: int, one: Stretch, steps: _Steps) -> None:
        """What has come by the end of each operation: no more than there is room for, and all that
        was away by the last one before the access.
        """
        program, time = self.program, self.pattern.in_ns(number) / self.unit_ns
        last = one.inner[-1]
        program.row([(steps.back[last], 1.0), (steps.left[last], -1.0)], 0.0, 0.0)
        before: list[tuple[int, float]] = []
        for operation, back in steps.back.items():
            now = program.column(self._prices.moved * time, most=1.0)
            come = program.column(most=1.0)
            self._inward[operation % len(self.pattern)].append((now, time))
            program.row([(now, 1.0), (come, -1.0), *before], 0.0, 0.0)
            program.row([(come, 1.0), (back, -1.0)], 0.0 if operation == last else -1.0, 0.0)
            before = [(come, 1.0)]

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
        copied: dict[int, int] = {}
        for after in range(1, max((after for after, _ in leaving), default=0)):
            copied[after] = program.column(most=1.0)
            now = program.column(self._prices.moved * time, most=1.0)
            self._outward[(writer + after) % count].append((now, time))
            earlier = [(copied[after - 1], 1.0)] if after > 1 else []
            program.row([(now, 1.0), (copied[after], -1.0), *earlier], least=0.0)
        for after, column in leaving:
            done = [(copied[after - 1], -1.0)] if after > 1 else []
            program.row([(column, 1.0), *done], most=0.0)

    def _operation(self, operation: int) -> None:
        program, pattern = self.program, self.pattern
        duration = pattern.durations_ns[operation] / self.unit_ns
        for moved in (self._inward[operation], self._outward[operation]):
            program.row([*moved, (self._waits[operation], -1.0)], most=duration)
        there = [(column, -size) for column, size in self._away[operation]]
        there.append((self._beyond[operation], -self.unit_bytes))
        self.room(operation, there, self._alive[operation])
