"""Brings a session's event log and the simulated driver's record of the same run together: which
work belongs to which event.

Both are in the order of the program, and each part of the driver's record that has an event is
behind it: a launch, copy or memset behind its execution, a wait behind its synchronisation. The
rest (events of the program's own, time that the host spends) is behind the event that was last. The
driver names memory by address; its allocations and those of the log come in the same order.
"""

from __future__ import annotations

import bisect
from dataclasses import replace

from deepum._core import lib
from deepum.core import Allocate, Event, EventLog, Execute, Free, events
from deepum.trace import work
from deepum.trace.trace import Trace
from deepum.trace.work import BY_ADDRESS, Access, Work

_COPY, _GRAPH = int(lib.DEEPUM_EXECUTE_COPY), int(lib.DEEPUM_EXECUTE_GRAPH)
_ENQUEUES = {lib.DEEPUM_WORK_LAUNCH, lib.DEEPUM_WORK_COPY}
_WAITS = {lib.DEEPUM_WORK_SYNCHRONISE_EVENT, lib.DEEPUM_WORK_SYNCHRONISE_STREAM}
_ON_STREAM = _ENQUEUES | {
    lib.DEEPUM_WORK_HOST_COPY,
    lib.DEEPUM_WORK_CALL,
    lib.DEEPUM_WORK_PREFETCH,
    lib.DEEPUM_WORK_DISCARD,
}


class _Places:
    """Which slot lies at an address: each of the driver's allocations takes the next of the log
    that is as large.
    """

    def __init__(self, log_events: list[Event]) -> None:
        self._allocated: dict[int, list[int]] = {}  # slots by size, in order
        for event in log_events:
            if isinstance(event, Allocate):
                self._allocated.setdefault(event.bytes, []).append(event.slot)
        for slots in self._allocated.values():
            slots.reverse()
        self._bases: list[int] = []
        self._at: dict[int, tuple[int, int]] = {}  # by base: slot, bytes

    def add(self, base: int, size: int) -> bool:
        slots = self._allocated.get(size)
        if not slots:
            return False
        if base not in self._at:
            bisect.insort(self._bases, base)
        self._at[base] = slots.pop(), size
        return True

    def remove(self, base: int) -> bool:
        if self._at.pop(base, None) is None:
            return False
        del self._bases[bisect.bisect_left(self._bases, base)]
        return True

    def locate(self, access: Access) -> list[Access]:
        """The same by slot; nothing where it is no managed memory of the log."""
        found = []
        low, high = access.offset, access.offset + access.bytes
        at = max(bisect.bisect_right(self._bases, low) - 1, 0)
        for base in self._bases[at:]:
            if base >= high:
                break
            slot, size = self._at[base]
            start, end = max(low, base), min(high, base + size)
            if start < end:
                found.append(Access(slot, access.flags, start - base, end - start))
        return found


class _Events:
    """The log's events, taken one after the other."""

    def __init__(self, log_events: list[Event]) -> None:
        self._log_events = log_events
        self._next = 0
        self.sequence = 0  # of the event that was last

    def pass_to(self, wanted: int) -> None:
        """Up to that event and including it."""
        self._next = wanted + 1
        self.sequence = self._log_events[wanted].sequence

    def execution(self, flags: int) -> int | None:
        """Where the next execution is, if it is of that kind."""
        for at in range(self._next, len(self._log_events)):
            event = self._log_events[at]
            if isinstance(event, Execute):
                return at if event.flags & (_COPY | _GRAPH) == flags else None
        return None

    def wait(self) -> int | None:
        """Where the next synchronisation is, before the next execution and before memory is
        freed.
        """
        for at in range(self._next, len(self._log_events)):
            event = self._log_events[at]
            if isinstance(event, (Execute, Free)):
                return None
            if event.kind == "synchronise":
                return at
        return None


def join(name: str, log: EventLog, raw: bytes) -> Trace:
    """The trace. `raw`: the driver's records, empty if there are none. Raises ValueError when they
    are not of the same run.
    """
    if not raw or next(work.decode(raw)).sequence != 0:  # nothing to join, or it was made together
        return Trace(name, log.records, raw, log.settings)
    log_events = list(events(log.records))
    places, at = _Places(log_events), _Events(log_events)
    joined: list[bytes] = []
    foreign: set[int] = set()  # events that the mover recorded last
    program: set[int] = set()  # streams that the program put work on
    unmatched = executions = 0
    new_graph = False
    for one in work.decode(raw):
        if one.kind == lib.DEEPUM_WORK_RECORD:
            (foreign.add if one.flags & lib.DEEPUM_WORK_OF_HELPER else foreign.discard)(one.event)
        if one.flags & lib.DEEPUM_WORK_OF_HELPER:
            continue
        if one.kind == lib.DEEPUM_WORK_MAP and one.flags & lib.DEEPUM_WORK_MANAGED:
            places.add(one.accesses[0].offset, one.accesses[0].bytes)
            continue
        if one.kind == lib.DEEPUM_WORK_UNMAP and places.remove(one.accesses[0].offset):
            continue
        if (
            one.kind in (lib.DEEPUM_WORK_WAIT, lib.DEEPUM_WORK_SYNCHRONISE_EVENT)
            and one.event in foreign
        ):
            continue
        if one.kind == lib.DEEPUM_WORK_SYNCHRONISE_STREAM and one.stream not in program:
            continue
        if one.kind in _ON_STREAM:
            program.add(one.stream)
        accesses = one.accesses
        if one.kind not in (lib.DEEPUM_WORK_MAP, lib.DEEPUM_WORK_UNMAP):
            accesses = tuple(found for access in one.accesses for found in places.locate(access))
        if one.kind in _ENQUEUES:
            of_graph = bool(one.flags & lib.DEEPUM_WORK_OF_GRAPH)
            copy = one.kind == lib.DEEPUM_WORK_COPY or bool(one.flags & lib.DEEPUM_WORK_UNCOUNTED)
            if of_graph:
                wanted = at.execution(_GRAPH) if new_graph else None
            else:
                # Copies that touch no managed memory are not told; kernels always are.
                wanted = at.execution(_COPY if copy else 0) if accesses or not copy else None
            if wanted is not None:
                at.pass_to(wanted)
                executions += 1
            elif not of_graph and (accesses or not copy):
                unmatched += 1
            new_graph = False
        elif one.kind == lib.DEEPUM_WORK_SPEND:
            new_graph = True
        elif one.kind in _WAITS and (wait := at.wait()) is not None:
            at.pass_to(wait)
        joined.append(_of(one, at.sequence, accesses).encode())
    if unmatched > executions // 8:
        raise ValueError(
            f"{unmatched} launches of the recorded work have no event beside {executions} that have"
        )
    return Trace(name, log.records, b"".join(joined), log.settings)


def _of(one: Work, sequence: int, accesses: tuple[Access, ...]) -> Work:
    assert all(access.slot != BY_ADDRESS for access in accesses) or one.kind in (
        lib.DEEPUM_WORK_MAP,
        lib.DEEPUM_WORK_UNMAP,
    )
    return replace(one, sequence=sequence, accesses=accesses)
