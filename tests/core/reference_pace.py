"""Whether clean copies pay, in plain Python: what native/core/pace_trial.cpp does.

Iterations are timed with them and without them, and the better of the two goes on.
"""

from __future__ import annotations

from collections import deque

LEARNING, SETTLING, MEASURED = 9, 3, 3  # iterations
ALIKE_PART = 8  # of an iteration
MOST_CHANGES = 64
MOST_LAUNCHES = 1 << 16


class Pace:
    """The trial of one program. Positions count launches, times are microseconds."""

    def __init__(self) -> None:
        self.phase = "with"
        self.position = 0
        self.iteration = 0
        self.start = 0  # launch from which on time counts
        self.began: float | None = None  # time of that
        self.pace_with = 0.0
        self.copies = self.copied = 0  # blocks copied out ahead or dropped, when the phase began and so far
        self.changes = 0
        self.told = False
        self.last: tuple[int, int] | None = None  # position and time
        self.launches: deque[tuple[int, int]] = deque()  # sequence and position

    def on(self) -> bool:
        return self.phase in ("with", "better with")

    def over(self) -> bool:
        return self.phase.startswith("better")

    def representative(self) -> bool:
        """What is left and copied now tells what will be."""
        return self.phase != "without" and not (self.phase == "better with" and self.position < self.start)

    def under_way(self) -> bool:
        return not self.over() and self.told and (self.phase == "without" or self.copied != self.copies)

    def begin(self, phase: str, position: int, settling: int) -> None:
        self.phase, self.start, self.began, self.copies = phase, position + settling * self.iteration, None, self.copied

    def launched(self, position: int, sequence: int, iteration: int, copied: int) -> None:
        self.position = position
        if self.over() or iteration == 0:
            return
        self.copied = copied
        if abs(iteration - self.iteration) > self.iteration // ALIKE_PART:
            self.iteration = iteration
            self.changes += 1
            self.begin("with", position, LEARNING)
            if self.changes > MOST_CHANGES:
                self.phase, self.start = "better with", 0
                return
        if len(self.launches) == MOST_LAUNCHES:
            self.forget()
        self.launches.append((sequence, position))

    def completed(self, sequence: int, at: int) -> None:
        if self.over():
            return
        done = [self.launches.popleft() for _ in range(sum(1 for each in self.launches if each[0] <= sequence))]
        self.told |= at != 0
        if not done or at == 0:
            return
        if self.last is not None and at < self.last[1]:
            self.forget()
        now = (done[-1][1], at)
        if self.last is not None:
            self.measure(self.last, now)
        self.last = now

    def measure(self, before: tuple[int, int], now: tuple[int, int]) -> None:
        def when(position: int) -> float:
            return before[1] + (position - before[0]) / (now[0] - before[0]) * (now[1] - before[1])

        until = self.start + MEASURED * self.iteration
        if before[0] <= self.start < now[0]:
            self.began = when(self.start)
        elif before[0] > self.start and self.began is None:
            self.start = now[0] + self.iteration
            return
        if before[0] <= until < now[0] and self.began is not None:
            self.end((when(until) - self.began) / (until - self.start), before[0])

    def end(self, pace: float, latest: int) -> None:
        if self.phase == "without":
            self.start = self.position + SETTLING * self.iteration
            self.phase = "better without" if pace < self.pace_with else "better with"
        elif self.copied == self.copies:
            self.begin("with", latest, LEARNING)
        else:
            self.pace_with = pace
            self.begin("without", self.launches[-1][1] if self.launches else latest, SETTLING)

    def forget(self) -> None:
        self.launches.clear()
        self.last = self.began = None
