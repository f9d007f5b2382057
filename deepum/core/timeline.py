"""How long iterations take, from the times at which some launches had completed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from deepum.core.plan import LaunchTime


class Timeline:
    """Times of launches in order, the latest so many."""

    def __init__(self, most: int = 1 << 17) -> None:
        self._most = most
        self._launches: list[int] = []
        self._times: list[int] = []
        self._known: list[LaunchTime] = []

    def extend(self, times: Iterable[LaunchTime]) -> None:
        """Those that became known. One that is not behind the others, as of another stream, is left
        out.
        """
        for time in times:
            if not self._launches or (
                time.launch > self._launches[-1] and time.completed_at >= self._times[-1]
            ):
                self._launches.append(time.launch)
                self._times.append(time.completed_at)
                self._known.append(time)
        if len(self._launches) > 2 * self._most:
            for kept in (self._launches, self._times, self._known):
                del kept[: -self._most]

    def clear(self) -> None:
        """Forgets them all."""
        for kept in (self._launches, self._times, self._known):
            kept.clear()

    def since(self, launch: int) -> list[LaunchTime]:
        """Those of that launch and of those behind it."""
        return self._known[bisect_left(self._launches, launch) :]

    @property
    def latest(self) -> int:
        """The launch whose time became known last; 0: none."""
        return self._launches[-1] if self._launches else 0

    def first_from(self, launch: int) -> int:
        """The first launch from that one on whose time is known; that one where none is."""
        place = bisect_left(self._launches, launch)
        return self._launches[place] if place < len(self._launches) else launch

    def at(self, launch: int) -> float | None:
        """When that launch had completed, microseconds; between two that are known in proportion.
        None where it is not between two.
        """
        place = bisect_left(self._launches, launch)
        if place == len(self._launches) or (place == 0 and self._launches[0] != launch):
            return None
        if self._launches[place] == launch:
            return float(self._times[place])
        before, after = self._launches[place - 1], self._launches[place]
        part = (launch - before) / (after - before)
        return self._times[place - 1] + part * (self._times[place] - self._times[place - 1])

    def iterations(self, first: int, launches: int) -> list[float]:
        """Microseconds of each whole iteration of so many launches behind launch `first`, as far as
        they are known.
        """
        found: list[float] = []
        before = self.at(first)
        while before is not None and (after := self.at(first + launches)) is not None:
            found.append(after - before)
            before, first = after, first + launches
        return found
