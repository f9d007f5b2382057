"""What was used a short while ago, measured by the memory that was used since."""

from __future__ import annotations

import math
from collections import deque


class Window:
    """size: bytes that operators use while a content that they used stays."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._total = 0  # bytes used so far
        self._uses: deque[tuple[int, float]] = deque()

    def use(self, size: int, clock: float) -> None:
        """So many bytes are used at that time, nanoseconds, which never goes back."""
        if self._uses and self._uses[-1][1] == clock:
            self._uses.pop()
        self._total += size
        self._uses.append((self._total, clock))
        least = self._total - self._size
        while len(self._uses) > 1 and self._uses[1][0] <= least:
            self._uses.popleft()

    @property
    def begin(self) -> float:
        """What was not used after this time is older than the window: infinite without a size,
        negative infinite as long as less than the window was used.
        """
        if self._size <= 0:
            return math.inf
        if not self._uses or self._total - self._size < self._uses[0][0]:
            return -math.inf
        return self._uses[0][1]
