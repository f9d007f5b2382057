"""A timeline in the Trace Event Format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

One process; a thread for each of what can happen beside others: kernels of a stream, moves of a
kind. Slices of one thread must nest: what would overlap goes to a thread of its own. Times are
microseconds, exact to the nanosecond.
"""

from __future__ import annotations

import gzip
import heapq
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deepum._core import ffi
from deepum.report.timeline import KINDS, Timeline

Event = dict[str, Any]

_PID = 1
_COMMANDS = {
    number: name.removeprefix("DEEPUM_COMMAND_").lower()
    for number, name in ffi.typeof("enum deepum_command_kind").elements.items()
}
_MOVES = {
    "prefetch": "to the GPU: prefetches",
    "copy_in": "to the GPU: the program's copies",
    "fault": "to the GPU: fault batches",
    "remote_in": "to the GPU: read in place",
    "evict": "to the host: evictions ahead of need",
    "driver_evict": "to the host: evictions by the driver",
    "copy_out": "to the host: the program's copies",
    "remote_out": "to the host: written in place",
}


class _Threads:
    """Numbers threads in the order in which they should be shown, and names them."""

    def __init__(self) -> None:
        # By group: of the latest slice of each of its threads, ns.
        self._ends: dict[str, list[int]] = {}
        self._numbers: dict[tuple[str, int], int] = {}

    def of(self, group: str, start: int = 0, end: int = 0) -> int:
        """The thread of that group that is free then."""
        ends = self._ends.setdefault(group, [])
        place = next((i for i, latest in enumerate(ends) if latest <= start), len(ends))
        ends[place : place + 1] = [end]
        return self._numbers.setdefault((group, place), len(self._numbers) + 1)

    def names(self) -> Iterator[Event]:
        for (group, place), number in self._numbers.items():
            name = group if place == 0 else f"{group} ({place + 1})"
            yield {
                "ph": "M",
                "pid": _PID,
                "tid": number,
                "name": "thread_name",
                "args": {"name": name},
            }
            yield {
                "ph": "M",
                "pid": _PID,
                "tid": number,
                "name": "thread_sort_index",
                "args": {"sort_index": number},
            }


def _slice(name: str, category: str, tid: int, start: int, end: int, **args: Any) -> Event:
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": _PID,
        "tid": tid,
        "ts": start / 1e3,
        "dur": (end - start) / 1e3,
        "args": args,
    }


def _instant(name: str, category: str, tid: int, at: int, **args: Any) -> Event:
    return {
        "ph": "i",
        "s": "t",
        "name": name,
        "cat": category,
        "pid": _PID,
        "tid": tid,
        "ts": at / 1e3,
        "args": args,
    }


def _counter(name: str, at: int, **values: int) -> Event:
    return {"ph": "C", "name": name, "pid": _PID, "tid": 0, "ts": at / 1e3, "args": values}


def _steps(timeline: Timeline, threads: _Threads) -> Iterator[Event]:
    before = 0
    for number, ns in enumerate(timeline.steps, start=1):
        yield _slice(
            f"iteration {number}",
            "iteration",
            threads.of("iterations", before, round(ns)),
            before,
            round(ns),
        )
        before = round(ns)


def _decisions(timeline: Timeline, threads: _Threads) -> Iterator[Event]:
    for record in timeline.of("decision"):
        name = _COMMANDS.get(int(record["command"]), "command")
        arguments = {
            "commands": int(record["count"]),
            "bytes": int(record["bytes"]),
            "event": int(record["tag"]),
        }
        yield _instant(
            name,
            "decision",
            threads.of("decisions, when the host made them"),
            round(record["start_ns"]),
            **arguments,
        )


def _kernels(timeline: Timeline, threads: _Threads) -> Iterator[Event]:
    streams = timeline.launches.stream
    for stream in sorted({int(stream) for stream in streams}):
        threads.of(f"stream {stream}")
    records = timeline.of("kernel", "hold")
    for record, place in zip(records, timeline.launched(records["tag"]).tolist(), strict=True):
        start, end = round(record["start_ns"]), round(record["end_ns"])
        tid = threads.of(f"stream {streams[place]}" if place >= 0 else "other kernels", start, end)
        sequence = int(record["tag"])
        if record["kind"] == KINDS["hold"]:
            yield _slice("held for prefetches", "hold", tid, start, end, launch=sequence)
        else:
            name = timeline.kernel_name(place) if place >= 0 else "kernel"
            yield _slice(
                name,
                "kernel",
                tid,
                start,
                end,
                launch=sequence,
                waited_for_memory_us=float(record["stall_ns"]) / 1e3,
            )
    for record in timeline.of("fill"):
        start, end = round(record["start_ns"]), round(record["end_ns"])
        yield _slice(
            "memset or copy",
            "fill",
            threads.of("memsets and copies in the GPU", start, end),
            start,
            end,
        )


def _moves(timeline: Timeline, threads: _Threads) -> Iterator[Event]:
    for kind, group in _MOVES.items():
        for record in timeline.of(kind):
            start, end = round(record["start_ns"]), round(record["end_ns"])
            counted = (
                "faults"
                if kind == "fault"
                else "copies"
                if kind.startswith("copy")
                else "um_blocks"
            )
            arguments = {counted: int(record["count"]), "bytes": int(record["bytes"])}
            yield _slice(
                kind.replace("_", " "),
                "move",
                threads.of(group, start, end),
                start,
                end,
                **arguments,
            )
    for kind in ("discard", "release"):
        for record in timeline.of(kind):
            tid = threads.of("memory given up without a copy")
            yield _instant(kind, "drop", tid, round(record["start_ns"]), bytes=int(record["bytes"]))


def _memory(timeline: Timeline) -> Iterator[Event]:
    machine = timeline.activities[timeline.activities["kind"] <= KINDS["release"]]
    latest = -1
    for at, resident in sorted(
        zip(machine["end_ns"].tolist(), machine["resident_bytes"].tolist(), strict=True),
        key=lambda one: one[0],
    ):
        if resident != latest:
            latest = resident
            yield _counter("memory resident on the GPU, bytes", round(at), resident=resident)


def _program_memory(timeline: Timeline) -> Iterator[Event]:
    kernels = timeline.of("kernel")
    latest = (-1, -1)
    for at, place in zip(
        kernels["start_ns"].tolist(), timeline.launched(kernels["tag"]).tolist(), strict=True
    ):
        if place < 0:
            continue
        levels = int(timeline.launches.allocated[place]), int(timeline.launches.used[place])
        if levels != latest:
            latest = levels
            yield _counter(
                "memory of the program, bytes",
                round(at),
                allocated=levels[0],
                dead=levels[0] - levels[1],
            )


def events(timeline: Timeline) -> Iterator[Event]:
    """The names first, then all by time."""
    threads = _Threads()
    parts = [list(part(timeline, threads)) for part in (_steps, _decisions, _kernels, _moves)]
    parts += [list(_memory(timeline)), list(_program_memory(timeline))]
    name = f"{timeline.workload}, {timeline.policy} on {timeline.machine}"
    yield {"ph": "M", "pid": _PID, "tid": 0, "name": "process_name", "args": {"name": name}}
    yield from threads.names()
    yield from heapq.merge(
        *(sorted(part, key=lambda event: float(event["ts"])) for part in parts),
        key=lambda event: float(event["ts"]),
    )


def write(timeline: Timeline, path: Path) -> int:
    """Writes the file, compressed if its name ends in .gz; how many events it has. Raises
    OSError.
    """
    count = 0
    with (
        gzip.open(path, "wt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open("w", encoding="utf-8") as file
    ):
        file.write('{"displayTimeUnit":"ms","traceEvents":[\n')
        for event in events(timeline):
            file.write(",\n" if count else "")
            file.write(json.dumps(event, separators=(",", ":")))
            count += 1
        file.write("\n]}\n")
    return count
