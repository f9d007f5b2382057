"""The latest launches, and a number for the last few of them."""

from __future__ import annotations

from typing import NamedTuple

MOST = 1 << 17  # launches kept
CONTEXT = 8  # launches of a context
FACTOR = 0x9E3779B97F4A7C15
WORD = 1 << 64


class Launch(NamedTuple):
    hash: int
    named: int


def context_of(hashes: list[int]) -> int:
    context = 0
    for each in hashes:
        context = (context * FACTOR + each) % WORD
    return context


class RecentLaunches:
    """All of them; `size` says how many are to be looked at."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []

    def append(self, launch: Launch) -> None:
        self.launches.append(launch)

    @property
    def count(self) -> int:
        return len(self.launches)

    @property
    def size(self) -> int:
        return min(self.count, MOST)

    def context(self, count: int) -> int:
        """When there were so many."""
        return context_of([each.hash for each in self.launches[max(0, count - CONTEXT) : count]])
