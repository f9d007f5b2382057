"""The launches of an iteration, and where in it the program is."""

from __future__ import annotations

from typing import NamedTuple

from reference.iteration.recent_launches import MOST

MOST_IN_A_ROW, ODD_SHARE, LEAST_TOLERANT = 2, 32, 8


class Deviation(NamedTuple):
    at: int
    removed: int
    hashes: tuple[int, ...]


class HeldPattern:
    def __init__(self, launches: list[int], next_: int) -> None:
        self.launches = launches
        self.next = next_
        self.latest = (next_ - 1) % len(launches)
        self.begins = self.latest == 0
        self.as_expected = True
        self.ended = 0
        self.pending: list[int] = []  # odd launches up to the latest
        self.odd = 0
        self.deviations: list[Deviation] = []  # of this iteration,
        self.deviations_before: list[Deviation] = []  # of the one before

    def launched(self, launch: int) -> bool:
        """False: the program does something else."""
        if not self.pending and self.launches[self.next] == launch:
            self.as_expected = True
            self.arrive(self.next)
            return True
        self.as_expected = self.begins = False
        if len(self.launches) < LEAST_TOLERANT:
            return False
        for skipped in (len(self.pending), *range(MOST_IN_A_ROW + 1)):
            if self.launches[(self.next + skipped) % len(self.launches)] == launch:
                return self.accept(skipped)
        if len(self.pending) == MOST_IN_A_ROW:
            return False
        self.pending.append(launch)
        self.latest = self.next
        return True

    def accept(self, skipped: int) -> bool:
        self.odd += max(skipped, len(self.pending))
        if self.odd > max(MOST_IN_A_ROW, len(self.launches) // ODD_SHARE):
            return False
        deviation = Deviation(self.next, skipped, tuple(self.pending))
        index = (self.next + skipped) % len(self.launches)
        self.pending = []
        self.as_expected = True
        before = self.deviations if self.next == 0 else self.deviations_before
        if index >= self.next and deviation in before and len(self.launches) < MOST:
            self.adopt(deviation)
            index = deviation.at + len(deviation.hashes)
        self.arrive(index)
        self.deviations.append(deviation)
        return True

    def adopt(self, deviation: Deviation) -> None:
        at, removed, hashes = deviation
        self.launches[at : at + removed] = hashes
        self.deviations, self.deviations_before = (
            [
                each._replace(at=each.at + len(hashes) - removed) if each.at > at else each
                for each in others
            ]
            for others in (self.deviations, self.deviations_before)
        )

    def arrive(self, index: int) -> None:
        self.begins = self.next == 0 or index < self.next
        if self.begins:
            self.ended += index < self.next
            self.odd = 0
            self.deviations, self.deviations_before = [], self.deviations
        self.latest = index
        self.next = (index + 1) % len(self.launches)
        self.ended += self.next == 0
