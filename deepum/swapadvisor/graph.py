"""A dataflow graph: operators with their times, tensors with their sizes (section 4.1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

# Operators in the order in which they run: a topological order of the graph.
Schedule = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Tensor:
    """starts: the content is there before the first operator, on the host. stays: it is needed
    after the last one, wherever it is. Parameters do both, inputs start, outputs stay.
    """

    bytes: int
    starts: bool = False
    stays: bool = False

    @property
    def is_parameter(self) -> bool:
        """Whether an iteration leaves it to the next one."""
        return self.starts and self.stays


@dataclass(frozen=True)
class Use:
    """An operator's use of the tensor of that number. reads: it needs the content; otherwise it
    overwrites all of it. writes: it changes it.
    """

    tensor: int
    reads: bool
    writes: bool


@dataclass(frozen=True)
class Operator:
    """ns: what it takes with its tensors in memory. uses: each tensor once."""

    name: str
    ns: float
    uses: tuple[Use, ...]


@dataclass(frozen=True)
class Graph:
    """Operators in the order of the program, which is a schedule of theirs. Raises ValueError for a
    use of no tensor, or of one twice.
    """

    operators: tuple[Operator, ...]
    tensors: tuple[Tensor, ...]

    def __post_init__(self) -> None:
        for operator in self.operators:
            used = [use.tensor for use in operator.uses]
            if len(set(used)) != len(used) or any(
                not 0 <= tensor < len(self.tensors) for tensor in used
            ):
                raise ValueError(f"operator {operator.name}: uses no tensor, or one twice")

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Operators that have to run one before the other: writers and readers of the content, and
        those that change it behind those that use it before.
        """
        found: set[tuple[int, int]] = set()
        writer: dict[int, int] = {}
        readers: dict[int, list[int]] = defaultdict(list)
        for number, operator in enumerate(self.operators):
            for use in operator.uses:
                if use.tensor in writer:
                    found.add((writer[use.tensor], number))
                if use.writes or not use.reads:
                    found.update((reader, number) for reader in readers.pop(use.tensor, ()))
                    writer[use.tensor] = number
                else:
                    readers[use.tensor].append(number)
        return tuple(sorted(found))

    @property
    def compute_ns(self) -> float:
        """Of all operators: what an iteration takes with unlimited memory."""
        return sum(operator.ns for operator in self.operators)

    @property
    def program(self) -> Schedule:
        """The schedule that is the program's own order."""
        return np.arange(len(self.operators), dtype=np.int32)

    def is_schedule(self, schedule: Sequence[int] | Schedule) -> bool:
        """Whether it has each operator once, behind all that it has to run behind."""
        order = np.asarray(schedule)
        if sorted(order.tolist()) != list(range(len(self.operators))):
            return False
        position = np.empty(len(order), dtype=np.int64)
        position[order] = np.arange(len(order))
        return all(position[before] < position[after] for before, after in self.edges)

    def peak_bytes(self, schedule: Schedule) -> int:
        """The most that is alive at once: parameters always, all else from its first use to its
        last.
        """
        return int(self._alive(schedule).max())

    def operator_bytes(self) -> int:
        """The most that an operator uses: with less nothing can be planned."""
        return max(
            sum(self.tensors[use.tensor].bytes for use in operator.uses)
            for operator in self.operators
        )

    def _alive(self, schedule: Schedule) -> npt.NDArray[np.int64]:
        first = [len(schedule)] * len(self.tensors)
        last = [-1] * len(self.tensors)
        for position, operator in enumerate(schedule.tolist()):
            for use in self.operators[operator].uses:
                first[use.tensor] = min(first[use.tensor], position)
                last[use.tensor] = position
        change = np.zeros(len(schedule) + 1, dtype=np.int64)
        for tensor, begin, end in zip(self.tensors, first, last, strict=True):
            if end >= 0:
                change[0 if tensor.starts else begin] += tensor.bytes
                change[len(schedule) if tensor.stays else end + 1] -= tensor.bytes
        return np.cumsum(change)[:-1]
