"""What time tells, in plain Python: what native/core/extras/pace_meter.cpp, pace_trial.cpp and remote_trial.cpp do.

Iterations are timed one way and the other, and the better of the two goes on. Positions count launches, times are microseconds.
"""

from __future__ import annotations

from collections import deque

LEARNING, SETTLING, MEASURED = 9, 3, 3  # iterations
ALIKE_PART = 8  # of an iteration
MOST_CHANGES = 64
MOST_LAUNCHES = 1 << 16
MOST_TRIALS = 8
BETTER, HOPELESS = 1 / 64, 2  # part by which launches have to be faster; times what they took before


class Meter:
    """How long launches take."""

    def __init__(self) -> None:
        self.iteration = 0
        self.start = 0  # launch from which on time counts
        self.began: float | None = None  # time of that
        self.told = False
        self.last: tuple[int, int] | None = None  # position and time
        self.since: tuple[int, int] | None = None  # the same, when it began
        self.launches: deque[tuple[int, int]] = deque()  # sequence and position

    def begin(self, position: int, iteration: int, settling: int) -> None:
        self.iteration, self.start, self.began, self.since = iteration, position + settling * iteration, None, None

    def launched(self, position: int, sequence: int) -> None:
        if len(self.launches) == MOST_LAUNCHES:
            self.forget()
        self.launches.append((sequence, position))

    def completed(self, sequence: int, at: int) -> float | None:
        """What a launch took, once, when the iterations are over."""
        done = [self.launches.popleft() for _ in range(sum(1 for each in self.launches if each[0] <= sequence))]
        self.told |= at != 0
        if not done or at == 0:
            return None
        if self.last is not None and at < self.last[1]:
            self.forget()
        before, self.last = self.last, (done[-1][1], at)
        self.since = self.since or self.last
        return self.measure(before, self.last) if before is not None else None

    def measure(self, before: tuple[int, int], now: tuple[int, int]) -> float | None:
        def when(position: int) -> float:
            return before[1] + (position - before[0]) / (now[0] - before[0]) * (now[1] - before[1])

        until = self.start + MEASURED * self.iteration
        if before[0] <= self.start < now[0]:
            self.began = when(self.start)
        elif before[0] > self.start and self.began is None:
            self.start = now[0] + self.iteration
            return None
        if before[0] <= until < now[0] and self.began is not None:
            return (when(until) - self.began) / (until - self.start)
        return None

    def forget(self) -> None:
        self.launches.clear()
        self.last = self.since = self.began = None


class Pace:
    """The trial of clean copies."""

    def __init__(self) -> None:
        self.phase = "with"
        self.meter = Meter()
        self.position = 0
        self.iteration = 0
        self.relearned = 0  # launch by which what leaves is as it was again
        self.pace = 0.0
        self.copies = self.copied = 0  # blocks copied out ahead or dropped, when the phase began and so far
        self.changes = 0

    def on(self) -> bool:
        return self.phase in ("with", "better with")

    def over(self) -> bool:
        return self.phase.startswith("better")

    def found(self) -> float:
        """The pace of what was just found better."""
        return self.pace if self.over() and self.position < self.relearned else 0.0

    def representative(self) -> bool:
        """What is left and copied now tells what will be."""
        return self.phase != "without" and not (self.phase == "better with" and self.position < self.relearned)

    def under_way(self) -> bool:
        return not self.over() and self.meter.told and (self.phase == "without" or self.copied != self.copies)

    def begin(self, phase: str, settling: int) -> None:
        self.phase, self.copies = phase, self.copied
        self.meter.begin(self.position, self.iteration, settling)

    def launched(self, position: int, sequence: int, iteration: int, copied: int) -> None:
        self.position = position
        if self.over() or iteration == 0:
            return
        self.copied = copied
        self.meter.launched(position, sequence)
        if abs(iteration - self.iteration) > self.iteration // ALIKE_PART:
            self.iteration = iteration
            self.changes += 1
            self.begin("with", LEARNING)
            if self.changes > MOST_CHANGES:
                self.phase = "better with"

    def completed(self, sequence: int, at: int) -> None:
        if self.over():
            return
        pace = self.meter.completed(sequence, at)
        if pace is None:
            return
        if self.phase == "without":
            self.relearned = self.position + SETTLING * self.iteration
            self.phase = "better without" if pace < self.pace else "better with"
            self.pace = min(pace, self.pace)
        elif self.copied == self.copies:
            self.begin("with", LEARNING)
        else:
            self.pace = pace
            self.begin("without", SETTLING)

    def forget(self) -> None:
        self.meter.forget()


class RemoteTrial:
    """The trials of tensors on the host."""

    def __init__(self) -> None:
        self.phase: str | None = None  # "before" or "placed"
        self.turn: str | None = None  # what is to be done
        self.meter = Meter()
        self.position = self.iteration = 0
        self.changed = 0  # launch at which the iteration became that
        self.known_at: int | None = None  # launch at which the pace was known
        self.pace = 0.0
        self.changes = self.trials = 0

    def ready(self, iterations: int) -> bool:
        if self.phase or not self.iteration or self.trials >= MOST_TRIALS or self.changes > MOST_CHANGES:
            return False
        return self.position - self.changed >= iterations * self.iteration

    def begin(self, pace: float) -> None:
        self.trials += 1
        if self.known_at is not None and self.position - self.known_at <= self.iteration:
            pace = self.pace
        self.pace = pace
        if pace > 0:
            self.place()
        else:
            self.phase = "before"
            self.meter.begin(self.position, self.iteration, 0)

    def place(self) -> None:
        self.phase = self.turn = "placed"
        self.meter.begin(self.position, self.iteration, SETTLING)

    def launched(self, position: int, sequence: int, iteration: int) -> None:
        self.position = position
        if abs(iteration - self.iteration) > self.iteration // ALIKE_PART:
            self.iteration, self.changed, self.known_at = iteration, position, None
            self.changes += 1
            self.abandon()
        if self.phase:
            self.meter.launched(position, sequence)

    def completed(self, sequence: int, at: int) -> None:
        if not self.phase:
            return
        pace = self.meter.completed(sequence, at)
        taken = passed = 0
        if self.meter.since is not None and self.meter.last is not None:
            passed, taken = (last - since for last, since in zip(self.meter.last, self.meter.since, strict=True))
        hopeless = self.phase == "placed" and taken > HOPELESS * self.pace * (passed + self.iteration)
        if pace is None and not hopeless:
            return
        self.known_at = self.position
        if self.phase == "before" and pace is not None:
            self.pace = pace
            self.place()
        elif pace is not None and not hopeless and pace < self.pace * (1 - BETTER):
            self.pace = pace
            self.end("keep")
        else:
            self.end("call back")

    def abandon(self) -> None:
        if self.phase:
            self.trials -= 1
            self.known_at = None
            self.end("abandon")

    def end(self, turn: str) -> None:
        self.phase, self.turn, self.meter = None, turn, Meter()
