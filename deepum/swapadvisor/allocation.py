"""The memory pool as a chromosome (section 5.3): which size class each tensor size belongs to, and
how many objects each class has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepum.swapadvisor.graph import Graph

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Allocation:
    """classes (the paper's CLS): by distinct tensor size, ascending, the number of its class, from
    1 on, never falling, without gaps. counts (CNT): by class, its objects.
    """

    classes: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def expanded(self) -> list[int]:
        """CNT_EXT: by tensor size, the objects of its class."""
        return [self.counts[one - 1] for one in self.classes]


def monotone(classes: Sequence[int]) -> tuple[int, ...]:
    """Made valid: what falls is raised by as little as it takes, and numbers without a size are
    left out.
    """
    raised = np.maximum.accumulate(np.asarray(classes, dtype=np.int64))
    return tuple((np.unique(raised, return_inverse=True)[1].reshape(-1) + 1).tolist())


def averaged(classes: Sequence[int], expanded: Sequence[float]) -> tuple[int, ...]:
    """CNT of CNT_EXT: the mean of a class's sizes, at least one object."""
    of_class = np.asarray(classes) - 1
    means = np.bincount(of_class, weights=np.asarray(expanded)) / np.bincount(of_class)
    return tuple(max(1, int(mean + 0.5)) for mean in means)


class Sizes:
    """The distinct tensor sizes of a graph (TS), and what fits a memory of so many bytes."""

    def __init__(self, sizes: Sequence[int], memory_bytes: int) -> None:
        self.sizes: Ints = np.unique(np.asarray(sizes, dtype=np.int64))
        self.memory_bytes = memory_bytes
        self.of_tensor = np.searchsorted(self.sizes, np.asarray(sizes, dtype=np.int64))
        self._tensors: Ints = np.bincount(self.of_tensor, minlength=len(self.sizes))
        self._needed: Ints = np.zeros((1, len(self.sizes)), dtype=np.int64)

    @classmethod
    def of(cls, graph: Graph, memory_bytes: int) -> Sizes:
        """Of its tensors. What an operator uses at once a pool has to hold at least."""
        made = cls([tensor.bytes for tensor in graph.tensors], memory_bytes)
        rows = np.zeros((len(graph.operators), len(made.sizes)), dtype=np.int64)
        for row, operator in zip(rows, graph.operators, strict=True):
            for use in operator.uses:
                row[made.of_tensor[use.tensor]] += 1
        made._needed = np.unique(rows, axis=0)
        return made

    def class_bytes(self, classes: Sequence[int]) -> Ints:
        """By class, the size of its objects: that of the largest tensor in it."""
        ends = np.flatnonzero(np.diff(np.asarray(classes), append=classes[-1] + 1))
        largest: Ints = self.sizes[ends]
        return largest

    def least(self, classes: Sequence[int]) -> Ints:
        """By class, the objects without which some operator cannot run."""
        needed: Ints = self._by_class(self._needed, classes).max(axis=0)
        return np.maximum(needed, 1)

    def most(self, classes: Sequence[int]) -> Ints:
        """By class, the objects beyond which more are of no use: its tensors."""
        counts: Ints = self._by_class(self._tensors[None, :], classes)[0]
        return counts

    def used_bytes(self, allocation: Allocation) -> int:
        """By all objects of all classes."""
        return int(self.class_bytes(allocation.classes) @ np.asarray(allocation.counts))

    def runs(self, allocation: Allocation) -> bool:
        """Whether it fits the memory, and every operator can run."""
        return self.used_bytes(allocation) <= self.memory_bytes and bool(
            (np.asarray(allocation.counts) >= self.least(allocation.classes)).all()
        )

    def leanest(self) -> tuple[tuple[int, ...], int]:
        """The classes whose pool takes the fewest bytes with what operators need at once, and
        these bytes: with less memory no pool can run all operators.
        """
        count = len(self.sizes)
        sums = np.concatenate([np.zeros((len(self._needed), 1), np.int64), self._needed], axis=1)
        sums = np.cumsum(sums, axis=1)
        # By number of sizes, the fewest bytes of a pool for the first so many, and where its last
        # class begins.
        fewest: Ints = np.zeros(count + 1, dtype=np.int64)
        begins = [0] * (count + 1)
        for end in range(1, count + 1):
            needed = np.maximum((sums[:, end, None] - sums[:, :end]).max(axis=0), 1)
            total = fewest[:end] + needed * self.sizes[end - 1]
            begins[end] = int(np.argmin(total))
            fewest[end] = total[begins[end]]
        classes: list[int] = []
        end = count
        while end:  # the last class gets 0, the one before -1, and so on
            before = classes[0] - 1 if classes else 0
            classes = [before] * (end - begins[end]) + classes
            end = begins[end]
        return monotone(classes), int(fewest[count])

    def repaired(self, classes: Sequence[int], counts: Sequence[int]) -> Allocation:
        """Made to fit: counts are reduced in inverse proportion to the sizes of their classes, each
        class by the same number of bytes, but not below what some operator needs. Where that alone
        is too much, the allocation cannot run, and is left so.
        """
        size, least = self.class_bytes(classes), self.least(classes)
        left = np.clip(
            np.asarray(counts, dtype=np.int64), least, np.maximum(least, self.most(classes))
        )
        while (over := int(size @ left) - self.memory_bytes) > 0:
            able = np.flatnonzero(left > least)
            if not len(able):
                break
            share = over / len(able)
            for one in able[::-1]:  # small objects fill what large ones leave
                cut = min(
                    int(-(-share // size[one])),
                    int(left[one] - least[one]),
                    -(-over // int(size[one])),
                )
                left[one] -= cut
                over -= cut * int(size[one])
                if over <= 0:
                    break
        return Allocation(tuple(classes), tuple(left.tolist()))

    def _by_class(self, rows: Ints, classes: Sequence[int]) -> Ints:
        begins = np.flatnonzero(np.diff(np.asarray(classes), prepend=0))
        summed: Ints = np.add.reduceat(rows, begins, axis=1)
        return summed


def crossed(
    sizes: Sizes, one: Allocation, other: Allocation, cut: int
) -> tuple[Allocation, Allocation]:
    """Both children: the first has `other`'s first `cut` sizes and `one`'s rest, the second the
    reverse.
    """

    def child(head: Allocation, tail: Allocation) -> Allocation:
        classes = monotone(head.classes[:cut] + tail.classes[cut:])
        return sizes.repaired(classes, averaged(classes, head.expanded[:cut] + tail.expanded[cut:]))

    return child(other, one), child(one, other)


def mutated(
    sizes: Sizes, parent: Allocation, chance: float, spread: float, random: np.random.Generator
) -> Allocation:
    """Each class number but the first with that chance: one more if it is its left neighbour's,
    else one less, with all to its right. Each count with that chance: a Gaussian around it, whose
    standard deviation is that part of it, one object at least.
    """
    steps = np.diff(np.asarray(parent.classes))
    flips = random.random(len(steps)) < chance
    classes = [1, *(1 + np.cumsum(np.where(flips, 1 - steps, steps))).tolist()]
    counts = np.asarray(averaged(classes, parent.expanded), dtype=np.float64)
    drawn = random.normal(counts, np.maximum(1.0, spread * counts))
    chosen = np.where(random.random(len(counts)) < chance, np.rint(drawn), counts)
    return sizes.repaired(classes, np.maximum(chosen, 1).astype(np.int64).tolist())
