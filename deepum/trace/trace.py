"""A trace: the events of a session and, where it is known, what its launches do and take (docs/simulate.md).

On disk it is an event log, `FILE`, and beside it a file of work records, `FILE.work`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deepum.core import BlockRange, EventLog, EventWriter
from deepum.trace import work

_SUFFIX = ".work"


@dataclass(frozen=True)
class Trace:
    """Events as wire records, work as work records that name events by their sequences and memory by slots."""

    name: str
    events: bytes
    work: bytes = b""
    settings: dict[str, Any] = field(default_factory=dict)  # of the log's header

    def save(self, path: Path) -> None:
        """Writes FILE and FILE.work. Raises OSError."""
        path.write_bytes(EventLog.header(self.settings) + self.events)
        work_path(path).write_bytes(work.header() + self.work)


def work_path(path: Path) -> Path:
    """Where the work of that event log is."""
    return path.with_name(path.name + _SUFFIX)


class TraceWriter(EventWriter):
    """Writes events with sequences as a session's ring gives them, and work behind the latest event."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 1
        self._work: list[bytes] = []

    def record(self, kind: int, body: bytes, device: int = 0, flags: int = 0) -> int:
        """As EventWriter's; each sequence is where the record lies, in words (native/runtime/event_ring.cpp)."""
        self.sequence = self._next - 1
        self._next += 2 + len(body) // 8
        return super().record(kind, body, device, flags)

    def launch(
        self,
        execution_hash: int,
        touched: Iterable[BlockRange],
        accesses: Sequence[work.Access],
        ns: float,
        stream: int = 0,
        ends_step: bool = False,
    ) -> int:
        """A launch: what the shim would tell of it, and what it does. `ns`: its time with all of its memory there."""
        sequence = self.execute(execution_hash, touched, stream)
        flags = work.ENDS_STEP if ends_step else 0
        self._work.append(work.Work(work.LAUNCH, sequence, flags, stream, ns=ns, accesses=tuple(accesses)).encode())
        return sequence

    def trace(self, name: str, settings: dict[str, Any] | None = None) -> Trace:
        """All that was written."""
        made = Trace(name, self.take(), b"".join(self._work), settings or {})
        self._work.clear()
        return made
