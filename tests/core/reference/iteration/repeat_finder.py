"""How far back the launches are found again that the program does now."""

from __future__ import annotations

from reference.iteration.recent_launches import MOST, WORD, Launch, RecentLaunches

MOST_IN_A_ROW, ODD_SHARE = 2, 32
FIRST_ENTRIES = 1 << 10
MIX = 0xD1342543DE82EF95


class RepeatFinder:
    def __init__(self, launches: RecentLaunches) -> None:
        self.launches = launches
        self.last: list[int] = []
        self.distance = self.run = self.exact = 0
        self.named = self.same_names = self.odd = self.odd_in_row = 0
        self.forget()

    def forget(self) -> None:
        self.last = [0] * FIRST_ENTRIES
        self.restart(0)

    def restart(self, way_back: int) -> None:
        self.follow(0)
        self.way_back, self.way_back_at = way_back, self.launches.count

    def index_of(self, context: int) -> int:
        return context * MIX % WORD * len(self.last) // WORD

    def way_back_of_latest(self) -> int:
        launches = self.launches
        if launches.count > len(self.last) and len(self.last) < MOST:
            self.last = [0] * (2 * len(self.last))
            for count in range(1, launches.count):
                self.last[self.index_of(launches.context(count))] = count
        index = self.index_of(launches.context(launches.count))
        before, self.last[index] = self.last[index], launches.count
        return launches.count - before if before else 0

    def same(self, distance: int) -> bool:
        launches = self.launches
        return (
            0 < distance < launches.size
            and launches.launches[-1].hash == launches.launches[-1 - distance].hash
        )

    def launched(self) -> None:
        noted = self.way_back_of_latest()
        back = noted if self.same(noted) else 0
        if back >= self.way_back or self.launches.count - self.way_back_at > 2 * self.way_back:
            self.way_back, self.way_back_at = back, self.launches.count
        if self.same(self.distance):
            before = self.launches.launches[-1 - self.distance]
            self.run += 1
            self.exact += 1
            self.note_names(self.launches.launches[-1], before)
            self.odd_in_row = 0
            if self.run % self.distance == 0:
                self.odd = 0
        elif self.is_exact(back) or not self.tolerate():
            self.follow(back)

    def is_exact(self, period: int) -> bool:
        launches = self.launches
        if not 0 < self.distance < period or 2 * period > launches.size:
            return False
        latest = launches.launches[-2 * period :]
        return all(
            now.hash == before.hash
            for now, before in zip(latest[period:], latest[:period], strict=True)
        )

    def note_names(self, now: Launch, before: Launch) -> None:
        self.named += now.named != now.hash
        self.same_names += now.named != now.hash and now.named == before.named

    def tolerate(self) -> bool:
        if not 0 < self.distance < self.launches.size:
            return False
        self.odd_in_row += 1
        if self.odd_in_row > MOST_IN_A_ROW:
            return False
        self.odd += 1
        if self.odd > self.distance // ODD_SHARE:
            return False
        self.run += 1
        self.exact = 0
        return True

    def follow(self, distance: int) -> None:
        self.distance = distance
        self.run = self.named = self.same_names = self.odd = self.odd_in_row = 0
        launches = self.launches.launches
        while distance and self.run + distance < self.launches.size:
            now, before = launches[-1 - self.run], launches[-1 - self.run - distance]
            if now.hash != before.hash:
                break
            self.run += 1
            self.note_names(now, before)
        self.exact = self.run
