"""Whether the program repeats itself, after how many launches, and where in its iteration it is."""

from __future__ import annotations

from dataclasses import dataclass

from reference.iteration.held_pattern import HeldPattern
from reference.iteration.recent_launches import CONTEXT, Launch, RecentLaunches, context_of
from reference.iteration.repeat_finder import RepeatFinder

LEAST_WITH_WAITS, LEAST_WITHOUT_WAITS, LEAST_OF_LAYERS = 32, 256, 1024
LONGEST_LAYER, MOST_LAYERS = 128, 64
MOST_DROPPED = 2
CERTAIN = 3  # periods with a wait in each


@dataclass
class Dropped:
    """`matched`: launches up to the latest that were those from its first on."""

    launches: list[int]
    waits: bool
    context: int
    matched: int = 0


class IterationDetector:
    def __init__(self) -> None:
        self.counted = self.counted_launches = self.least = 0
        self.held: HeldPattern | None = None
        self.forget()

    def forget(self) -> None:
        if self.held:
            self.count(self.held.ended, self.period)
        self.launches = RecentLaunches()
        self.finder = RepeatFinder(self.launches)
        self.held = None
        self.dropped: list[Dropped] = []
        self.counted_until = self.dropped_at = self.waited_at = self.waited_before = 0

    @property
    def period(self) -> int:
        """0: none is known."""
        return len(self.held.launches) if self.held else 0

    @property
    def iterations(self) -> int:
        return max(self.least, self.counted + (self.held.ended if self.held else 0))

    def count(self, iterations: int, period: int) -> None:
        self.counted += iterations
        self.counted_launches += iterations * period

    def waited(self) -> None:
        if self.waited_at != self.launches.count:
            self.waited_before, self.waited_at = self.waited_at, self.launches.count

    def launched(self, launch: int, named: int) -> None:
        self.launches.append(Launch(launch, named))
        if self.held:
            self.finder.way_back_of_latest()
            if not self.held.launched(launch):
                self.drop(self.held)
            return
        self.finder.launched()
        if not self.recognise(launch) and self.repeats():
            self.take()

    def recognise(self, launch: int) -> bool:
        for each in self.dropped:
            if each.matched:
                each.matched = each.matched + 1 if each.launches[each.matched] == launch else 0
            if not each.matched and self.launches.context(self.launches.count) == each.context:
                each.matched = CONTEXT
            if each.matched == len(each.launches):
                self.held = HeldPattern(each.launches, 0)
                self.dropped.remove(each)
                self.count(1, self.period)
                self.counted_until = self.launches.count
                return True
        return False

    def repeats(self) -> bool:
        finder = self.finder
        return (
            finder.distance > 0
            and (finder.exact >= finder.distance or finder.run >= 2 * finder.distance)
            and (2 * finder.same_names >= finder.named or self.is_certain(finder.distance))
            and 2 * finder.distance <= self.launches.size
            and finder.run >= self.least_run(finder.distance)
            and not self.is_of_known(finder.distance)
        )

    def is_certain(self, period: int) -> bool:
        return (
            period >= LEAST_WITH_WAITS
            and self.finder.run >= CERTAIN * period
            and self.waited_in(period)
        )

    def is_of_known(self, period: int) -> bool:
        return self.launches.count - self.dropped_at < period and any(
            each.waits and len(each.launches) < period for each in self.dropped
        )

    def waited_in(self, period: int) -> bool:
        return (
            self.waited_before != 0
            and self.launches.count - self.waited_at <= period
            and self.waited_at - self.waited_before <= period
        )

    def least_run(self, period: int) -> int:
        least = LEAST_WITH_WAITS
        if not self.waited_in(period):
            waits = self.waited_at != 0 and self.launches.count - self.waited_at <= LEAST_OF_LAYERS
            may_be_layers = period < LONGEST_LAYER
            least = LEAST_OF_LAYERS if waits or may_be_layers else LEAST_WITHOUT_WAITS
            least = max(least, MOST_LAYERS * period if may_be_layers else 0)
        return max(least, self.finder.way_back) if self.finder.way_back > period else least

    def take(self) -> None:
        period, now = self.finder.distance, self.launches.count
        boundary = self.waited_at if self.waited_at and now - self.waited_at < period else now
        pattern = [each.hash for each in self.launches.launches[boundary - period : boundary]]
        self.held = HeldPattern(pattern, now - boundary)
        began = max(now - self.finder.run - period, self.counted_until)
        if self.counted_launches < period:
            self.least = max(self.least, self.counted)
            self.counted = self.counted_launches = 0
        self.count(max(0, boundary - began) // period, period)
        self.counted_until = boundary

    def drop(self, held: HeldPattern) -> None:
        self.count(held.ended, len(held.launches))
        self.counted_until = self.dropped_at = self.launches.count
        period = len(held.launches)
        self.finder.restart(period)
        waits = self.waited_in(2 * period)
        if period > CONTEXT and (waits or period >= LONGEST_LAYER):
            context = context_of(held.launches[:CONTEXT])
            others = [
                each
                for each in self.dropped
                if each.context != context or len(each.launches) != period
            ]
            self.dropped = others[-(MOST_DROPPED - 1) :]
            for each in self.dropped:
                each.matched = 0
            self.dropped.append(Dropped(held.launches, waits, context))
        self.held = None
