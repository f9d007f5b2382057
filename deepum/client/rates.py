"""Rates: what happened between two looks at a session."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from deepum.daemon.figures import SessionFigures

_WINDOW_SECONDS = 8.0  # a step may take longer than the time between two looks


@dataclass(frozen=True)
class Rates:
    """Per second of the clock by which memory is moved: `virtual` is the simulated GPU's. None: no
    time passed by it.
    """

    clock: str  # `virtual` or `real`
    seconds: float
    steps: float | None
    launches: float | None
    bytes_in: float | None
    bytes_out: float | None
    faults: float | None

    @property
    def step_s(self) -> float | None:
        """Mean of a step's duration; None where none ended."""
        return 1 / self.steps if self.steps else None


def rates(before: SessionFigures | None, now: SessionFigures) -> Rates:
    """before: an earlier look at the same session; None: on the simulated GPU since it began, on a
    real one not known.
    """
    if now.virtual:
        began = (before.gpu_time_s or 0.0) if before is not None else 0.0
        clock, seconds = "virtual", (now.gpu_time_s or 0.0) - began
    else:
        clock, seconds = "real", now.at_s - before.at_s if before is not None else 0.0

    def rate(name: str) -> float | None:
        value, earlier = getattr(now, name), getattr(before, name) if before is not None else 0
        if value is None or seconds <= 0:
            return None
        return float(max(0, value - (earlier or 0)) / seconds)

    return Rates(
        clock,
        max(0.0, seconds),
        rate("steps"),
        rate("launches"),
        rate("bytes_in"),
        rate("bytes_out"),
        rate("faults"),
    )


class Looks:
    """Keeps the looks of the last seconds at each session, so that the next one has rates."""

    def __init__(self, window_s: float = _WINDOW_SECONDS) -> None:
        self._window_s = window_s
        self._looks: dict[int, deque[SessionFigures]] = {}

    def take(self, sessions: Iterable[SessionFigures]) -> dict[int, Rates]:
        """By session, over the window or what there is of it."""
        looks, found = {}, {}
        for now in sessions:
            kept = looks[now.session] = self._looks.get(now.session, deque())
            while len(kept) > 1 and now.at_s - kept[0].at_s > self._window_s:
                kept.popleft()
            found[now.session] = rates(kept[0] if kept else None, now)
            kept.append(now)
        self._looks = looks
        return found
