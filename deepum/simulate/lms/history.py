"""Which tensors LMS copies out before anybody asks for their memory: those whose like was swapped
at this point of its life before.

A tensor is known by its size, by how many tensors had been swapping candidates before it, and by
how many were when it became one: in a program that repeats itself, the same tensor of each
iteration. Its history is one bit for each time that it stopped being a candidate: swapped out, or
used again (`LMSReclaimHistory`, `predict_reclaim` and `record_reclaim` in
CUDACachingAllocator.cpp).
"""

from __future__ import annotations

from dataclasses import dataclass

_BITS = (1 << 32) - 1  # what a history remembers


@dataclass(slots=True)
class _History:
    """Bits of the present tensor and of the one before it, the latest lowest, and how many."""

    data: int = 0
    count: int = 0
    before: int = 0
    count_before: int = 0

    def renew(self) -> None:
        self.before, self.count_before = self.data, self.count
        self.data = self.count = 0

    def record(self, swapped: bool) -> None:
        self.data = (self.data << 1 | swapped) & _BITS
        self.count += 1

    def predicts(self) -> bool:
        """Whether all went as it did before, and a swap was next then."""
        left = self.count_before - self.count
        return left > 0 and bool(self.before >> (left - 1) & 1) and self.before >> left == self.data


class Histories:
    """Those of all tensors."""

    def __init__(self) -> None:
        self._by_name: dict[int, _History] = {}
        self._live = 0

    def name(self, size: int, candidates: int) -> int:
        """The name of a tensor that becomes a candidate for the first time, beside so many
        others.
        """
        self._live += 1
        name = (size << 24) + (self._live << 12) + candidates
        self._by_name.setdefault(name, _History()).renew()
        return name

    def ended(self) -> None:
        """A tensor that has a name is gone."""
        self._live -= 1

    def record(self, name: int, swapped: bool) -> None:
        """It is no candidate any more."""
        self._by_name[name].record(swapped)

    def predicts(self, name: int) -> bool:
        """Whether it will be swapped out before it is used."""
        return self._by_name[name].predicts()
