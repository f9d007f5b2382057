"""A trace: the events of a session and, where it is known, what its launches do and take
(docs/simulate.md).

On disk it is an event log, `FILE`, and beside it a file of work records, `FILE.work`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deepum._core import lib
from deepum.core import BlockRange, EventLog, EventWriter
from deepum.trace import work
from deepum.trace.stretch import Stretch

_SUFFIX = ".work"


@dataclass(frozen=True)
class Trace:
    """Events as wire records, work as work records that name events by their sequences and memory
    by slots.
    """

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
    """Writes events with sequences as a session's ring gives them, and work behind the latest
    event.
    """

    def __init__(self) -> None:
        super().__init__()
        self._next = 1
        self._work: list[bytes] = []

    def record(self, kind: int, body: bytes, device: int = 0, flags: int = 0) -> int:
        """As EventWriter's; each sequence is where the record lies, in words
        (native/runtime/event_ring.cpp).
        """
        self.sequence = self._next - 1
        self._next += 2 + len(body) // 8
        return super().record(kind, body, device, flags)

    def launch(
        self,
        execution_hash: int,
        touched: Iterable[BlockRange],
        accesses: Sequence[work.Access],
        cost: float | work.Cost,
        stream: int = 0,
        ends_step: bool = False,
        sparse: bool = False,
    ) -> int:
        """A launch: what the shim would tell of it, and what it does. `cost`: ns with all of its
        memory there, or what that follows from. `sparse`: the shim would know the kernel for a
        gather or scatter.
        """
        flags = int(lib.DEEPUM_EXECUTE_SPARSE) if sparse else 0
        sequence = self.execute(execution_hash, touched, stream, flags=flags)
        flags = work.ENDS_STEP if ends_step else 0
        full_cost = work.Cost(ns=cost) if isinstance(cost, (int, float)) else cost
        self._add(full_cost.work(sequence, flags, stream, tuple(accesses)))
        return sequence

    def copy_inside(
        self,
        execution_hash: int,
        to: work.Access,
        source: work.Access | None,
        ranges: Sequence[BlockRange],
    ) -> int:
        """A copy from device memory to device memory, or a memset (without `source`), as the
        driver's functions make them: counted as no kernel, and exactly known. `ranges`: what is
        written, then what is read.
        """
        sequence = self.execute(
            execution_hash, written=ranges[:1], read=ranges[1:], flags=int(lib.DEEPUM_EXECUTE_COPY)
        )
        self._add(
            work.Work(
                work.LAUNCH,
                sequence,
                work.UNCOUNTED,
                accesses=(to,) if source is None else (to, source),
            )
        )
        return sequence

    def copy(
        self, execution_hash: int, managed: work.Access, where: BlockRange, to_device: bool
    ) -> int:
        """A copy between host and device."""
        written, read = ([where], []) if to_device else ([], [where])
        sequence = self.execute(
            execution_hash, written=written, read=read, flags=int(lib.DEEPUM_EXECUTE_COPY)
        )
        flags = work.TO_DEVICE if to_device else 0
        self._add(
            work.Work(work.COPY, sequence, flags, device_bytes=managed.bytes, accesses=(managed,))
        )
        return sequence

    def end_step(self) -> None:
        """The last launch was the last of its step. Raises ValueError if there was none."""
        for at in range(len(self._work) - 1, -1, -1):
            if work.is_counted_launch(self._work[at]):
                self._work[at] = work.with_flags(self._work[at], work.ENDS_STEP)
                return
        raise ValueError("a step without a launch")

    def point(self) -> tuple[int, int, int]:
        """Where it is, for `since`."""
        return len(self._records), len(self._work), self._next

    def since(self, point: tuple[int, int, int]) -> Stretch:
        """What was written from that point on."""
        events, records, start = point
        return Stretch.cut(bytes(self._records[events:]), self._work[records:], start)

    def repeat(self, stretch: Stretch) -> None:
        """Writes it once more."""
        events, records = stretch.placed(self._next)
        self._records += events
        self._work += records
        self._next += len(events) // 8

    def _add(self, record: work.Work) -> None:
        self._work.append(record.encode())

    def trace(self, name: str, settings: dict[str, Any] | None = None) -> Trace:
        """All that was written."""
        made = Trace(name, self.take(), b"".join(self._work), settings or {})
        self._work.clear()
        return made
