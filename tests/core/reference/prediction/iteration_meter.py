"""How long an iteration is, and whether the program is being learned."""

from __future__ import annotations

from reference.clock import Clock
from reference.memory.um_block import Access

LEAST_PERIOD = 256  # launches over which the longest way back counts, at least
SETTLED_AFTER = 256  # launches, and two iterations


class IterationMeter:
    """The longest way back to the same launch, of late. It advances the clock's iteration
    and work.
    """

    def __init__(self, now: Clock) -> None:
        self.now = now
        self.longest = 0  # way back, since
        self.measured_from = 0  # that launch
        self.work = 0  # in an iteration
        self.began_work = 0  # when the present one began,
        self.began = 0  # at that launch

    def launched(self, period: int) -> None:
        now = self.now
        self.longest = max(self.longest, period)
        now.iteration = max(now.iteration, self.longest)
        if now.launch - self.measured_from > 2 * max(self.longest, LEAST_PERIOD):
            now.iteration, self.longest, self.measured_from = self.longest, 0, now.launch

    def touched(self, accesses: list[Access]) -> None:
        now = self.now
        now.work += 1 + sum(access.span[2] for access in accesses)
        self.work = max(self.work, now.work - self.began_work)
        if now.launch - self.began >= now.iteration:
            self.work = now.work - self.began_work
            self.began_work, self.began = now.work, now.launch


class LearningMonitor:
    """Launches are new, or come otherwise than predicted, or did so lately."""

    def __init__(self, now: Clock) -> None:
        self.now = now
        self.surprised = 0  # the latest launch that was new or not predicted,
        # And the longest way back to the same launch since, while faults were wanted.
        self.longest_period = 0
        # The latest launch before which blocks were seen to have been taken by the driver.
        self.taken_at = 0
        self.taken_lately = False  # since the latest launch

    def launched(self, surprise: bool) -> None:
        if surprise:
            self.surprised, self.longest_period = self.now.launch, 0
        if self.taken_lately:
            self.taken_at, self.taken_lately = self.now.launch, False

    def observe_period(self, period: int) -> None:
        self.longest_period = max(self.longest_period, period)

    def learning(self) -> bool:
        return self.now.launch - self.surprised <= SETTLED_AFTER + 2 * self.longest_period

    def lost_blocks_lately(self) -> bool:
        return self.taken_at > 0 and self.lately(self.taken_at)

    def lately(self, launch: int) -> bool:
        return self.now.launch - launch <= SETTLED_AFTER + 2 * self.now.iteration
