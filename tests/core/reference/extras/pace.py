"""What time tells: iterations are timed one way and the other, and the better of the two
goes on.
"""

from __future__ import annotations

from collections import deque

MEASURED = 3  # iterations that are timed,
SETTLING = 3  # after so many that are not, once something has changed
MOST_LAUNCHES = 1 << 16
ALIKE_SHARE = 8  # of an iteration
MOST_CHANGES = 64  # of the length of an iteration, after which nothing is tried
LEARNING = 9  # iterations
MOST_TRIALS = 8
# Part by which launches have to be faster; times what they took before.
BETTER, HOPELESS = 1 / 64, 2


def differ(iteration: int, known: int) -> bool:
    """Whether an iteration is of another length than the one that is known."""
    return abs(iteration - known) > known // ALIKE_SHARE


class PaceMeter:
    def __init__(self) -> None:
        self.iteration = 0
        self.start = 0  # launch from which on time counts
        self.began: float | None = None  # time of that
        self.has_times = False  # whether launches have them
        self.last: tuple[int, int] | None = None  # position and time
        self.since: tuple[int, int] | None = None  # the same, when it began
        self.launches: deque[tuple[int, int]] = deque()  # event and position

    def begin(self, position: int, iteration: int, settling: int) -> None:
        """Behind that launch iterations are timed, the first so many of them not counted."""
        self.iteration, self.start, self.began, self.since = (
            iteration,
            position + settling * iteration,
            None,
            None,
        )

    def launched(self, position: int, event: int) -> None:
        if len(self.launches) == MOST_LAUNCHES:
            self.forget()
        self.launches.append((event, position))

    def completed(self, event: int, at: int) -> float | None:
        """What a launch took, once, when the iterations are over."""
        done = [
            self.launches.popleft()
            for _ in range(sum(1 for each in self.launches if each[0] <= event))
        ]
        self.has_times |= at != 0
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
        """Launches or times were missed."""
        self.launches.clear()
        self.last = self.since = self.began = None

    def taken(self) -> tuple[int, int]:
        """Launches that completed since it began, as far as it is told, and the time."""
        if self.since is None or self.last is None:
            return 0, 0
        return self.last[0] - self.since[0], self.last[1] - self.since[1]


class PaceTrial:
    def __init__(self) -> None:
        self.phase = "with"
        self.meter = PaceMeter()
        self.position = 0
        self.iteration = 0
        self.relearned = 0  # launch by which what leaves is as it was again
        self.pace = 0.0  # with clean pages, then the better one
        # Blocks written back ahead or dropped, when the phase began and so far.
        self.saved_before = self.saved = 0
        self.changes = 0

    def on(self) -> bool:
        return self.phase in ("with", "better with")

    def over(self) -> bool:
        return self.phase.startswith("better")

    def found(self) -> float:
        """The pace of what was just found better."""
        return self.pace if self.over() and self.position < self.relearned else 0.0

    def representative(self) -> bool:
        """What leaves and is written back now tells what will be."""
        return self.phase != "without" and not (
            self.phase == "better with" and self.position < self.relearned
        )

    def under_way(self) -> bool:
        return (
            not self.over()
            and self.meter.has_times
            and (self.phase == "without" or self.saved != self.saved_before)
        )

    def begin(self, phase: str, settling: int) -> None:
        self.phase, self.saved_before = phase, self.saved
        self.meter.begin(self.position, self.iteration, settling)

    def launched(self, position: int, event: int, iteration: int, saved: int) -> None:
        self.position = position
        if self.over() or iteration == 0:
            return
        self.saved = saved
        self.meter.launched(position, event)
        if differ(iteration, self.iteration):
            self.iteration = iteration
            self.changes += 1
            self.begin("with", LEARNING)
            if self.changes > MOST_CHANGES:
                self.phase = "better with"

    def completed(self, event: int, at: int) -> None:
        if self.over():
            return
        pace = self.meter.completed(event, at)
        if pace is None:
            return
        if self.phase == "without":
            self.relearned = self.position + SETTLING * self.iteration
            self.phase = "better without" if pace < self.pace else "better with"
            self.pace = min(pace, self.pace)
        elif self.saved == self.saved_before:
            self.begin("with", LEARNING)
        else:
            self.pace = pace
            self.begin("without", SETTLING)


class RemoteTrial:
    def __init__(self) -> None:
        self.phase: str | None = None  # "before" or "placed"
        self.turn: str | None = None  # what is to be done
        self.meter = PaceMeter()
        self.position = self.iteration = 0
        self.changed = 0  # launch at which the iteration became that
        self.known_at: int | None = None  # launch at which the pace was known
        self.pace = 0.0
        self.changes = self.trials = 0

    def under_way(self) -> bool:
        return self.phase is not None

    def ready(self, iterations: int) -> bool:
        """Iterations have been of that length for so many of them, and nothing is tried."""
        if (
            self.phase
            or not self.iteration
            or self.trials >= MOST_TRIALS
            or self.changes > MOST_CHANGES
        ):
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

    def launched(self, position: int, event: int, iteration: int) -> None:
        self.position = position
        if differ(iteration, self.iteration):
            self.iteration, self.changed, self.known_at = iteration, position, None
            self.changes += 1
            self.abandon()
        if self.phase:
            self.meter.launched(position, event)

    def completed(self, event: int, at: int) -> None:
        if not self.phase:
            return
        pace = self.meter.completed(event, at)
        passed, taken = self.meter.taken()
        hopeless = self.phase == "placed" and taken > HOPELESS * self.pace * (
            passed + self.iteration
        )
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
        """Nothing can be said of it."""
        if self.phase:
            self.trials -= 1
            self.known_at = None
            self.end("abandon")

    def end(self, turn: str) -> None:
        self.phase, self.turn, self.meter = None, turn, PaceMeter()
