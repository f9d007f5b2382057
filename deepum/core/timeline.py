"""How long iterations take, from the times at which some launches had completed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from operator import attrgetter

from deepum.core.plan import LaunchTime

_LAUNCH = attrgetter("launch")


class Timeline:
    """Times of launches in order, the latest so many."""

    def __init__(self, most: int = 1 << 17) -> None:
        self._most = most
        self._known: list[LaunchTime] = []

    def extend(self, times: Iterable[LaunchTime]) -> None:
        """Those that became known. One that is not behind the others, as of another stream, is left
        out.
        """
        for time in times:
            last = self._known[-1] if self._known else None
            if last is None or (
                time.launch > last.launch and time.completed_at >= last.completed_at
            ):
                self._known.append(time)
        if len(self._known) > 2 * self._most:
            del self._known[: -self._most]

    def clear(self) -> None:
        """Forgets them all."""
        self._known.clear()

    @property
    def latest(self) -> int:
        """The launch whose time became known last; 0: none."""
        return self._known[-1].launch if self._known else 0

    @property
    def knows_waits(self) -> bool:
        """Whether the latest time says how long launches had waited for their moves."""
        return bool(self._known) and self._known[-1].waited is not None

    def since(self, launch: int) -> list[LaunchTime]:
        """Those of that launch and of those behind it."""
        return self._known[self._place(launch) :]

    def first_from(self, launch: int) -> int:
        """The first launch from that one on whose time is known; that one where none is."""
        place = self._place(launch)
        return self._known[place].launch if place < len(self._known) else launch

    def quietest_from(self, launch: int, launches: int) -> int | None:
        """Of so many launches from that one on, one whose time is known and is closest to those
        before and behind it: where iterations are told apart there, what lies between two known
        times matters least. The first behind them where the time of none of them is known; None:
        they have not all completed, as far as is known.
        """
        if self.latest < launch + launches:
            return None
        known = self._known
        places = range(max(self._place(launch), 1), self._place(launch + launches))
        closest = min(
            (i for i in places if i + 1 < len(known)),
            key=lambda i: known[i + 1].completed_at - known[i - 1].completed_at,
            default=None,
        )
        return self.first_from(launch) if closest is None else known[closest].launch

    def at(self, launch: int) -> float | None:
        """When that launch had completed, microseconds; between two that are known in proportion.
        None where it is not between two.
        """
        place = self._place(launch)
        if place == len(self._known):
            return None
        after = self._known[place]
        if after.launch == launch:
            return float(after.completed_at)
        if place == 0:
            return None
        before = self._known[place - 1]
        part = (launch - before.launch) / (after.launch - before.launch)
        return before.completed_at + part * (after.completed_at - before.completed_at)

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

    def _place(self, launch: int) -> int:
        return bisect_left(self._known, launch, key=_LAUNCH)
