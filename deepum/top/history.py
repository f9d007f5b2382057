"""What was seen of the sessions lately: figures, rates, and the course of the link."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from deepum.client.rates import Looks, Rates, rates
from deepum.daemon.figures import SessionFigures

_KEPT = 120  # looks


@dataclass
class Course:
    """Bytes a second between one look and the next, the latest last."""

    bytes_in: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT))
    bytes_out: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT))


@dataclass(frozen=True)
class Seen:
    """One session as it was seen last."""

    figures: SessionFigures
    rates: Rates
    course: Course


class History:
    """All sessions that the latest look found."""

    def __init__(self) -> None:
        self._looks = Looks()
        self._seen: dict[int, Seen] = {}

    def take(self, sessions: Sequence[SessionFigures]) -> list[Seen]:
        """Another look."""
        of_all = self._looks.take(sessions)
        seen = {}
        for now in sessions:
            before = self._seen.get(now.session)
            course = before.course if before is not None else Course()
            between = rates(before.figures if before is not None else None, now)
            course.bytes_in.append(between.bytes_in or 0.0)
            course.bytes_out.append(between.bytes_out or 0.0)
            seen[now.session] = Seen(now, of_all[now.session], course)
        self._seen = seen
        return list(seen.values())
