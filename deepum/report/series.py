"""From a timeline to what a chart can show: a few hundred points a series, however long the run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepum.report.timeline import OF_MACHINE, Floats, Integers, Records, Timeline

LANES: dict[str, tuple[str, ...]] = {
    "kernels": ("kernel", "fill"),
    "held": ("hold",),
    "to the GPU": ("prefetch", "copy_in", "remote_in"),
    "faults": ("fault",),
    "to the host": ("evict", "driver_evict", "copy_out", "remote_out"),
}


def edges(start: float, end: float, bins: int) -> Floats:
    """Of equal parts of that time, ns."""
    return np.linspace(start, max(end, start + 1), bins + 1)


def rate(records: Records, at: Floats) -> Floats:
    """Bytes a ns (GB/s) in each part of the time; a record's bytes are spread evenly over
    its time.
    """
    if not len(records):
        return np.zeros(len(at) - 1)
    starts = records["start_ns"]
    ends = np.maximum(records["end_ns"], starts + 1)
    rates = records["bytes"] / (ends - starts)
    times = np.concatenate([starts, ends])
    order = np.argsort(times, kind="stable")
    times = times[order]
    flowing = np.cumsum(np.concatenate([rates, -rates])[order])
    moved = np.concatenate([[0.0], np.cumsum(flowing[:-1] * np.diff(times))])
    until = np.interp(at, times, moved, left=0.0)
    between: Floats = np.diff(until) / np.diff(at)
    return between


def highest(times: Floats, values: Integers | Floats, at: Floats) -> Floats:
    """The most that a step function reaches in each part of the time; 0 before its first step.
    `times`: rising.
    """
    values = np.asarray(values, dtype=np.float64)
    last = np.searchsorted(times, at, side="right")
    found = np.zeros(len(at) - 1)
    for part in range(len(found)):
        first = max(int(last[part]) - 1, 0)
        inside = values[first : int(last[part + 1])]
        found[part] = inside.max() if len(inside) else 0.0
    return found


def memory(timeline: Timeline, at: Floats) -> dict[str, Floats]:
    """Bytes: the most in each part of the time. The program's memory is told at the time when its
    launches run, not when the host, which is ahead, asked for it.
    """
    machine = timeline.of(*OF_MACHINE)
    machine = machine[np.argsort(machine["end_ns"], kind="stable")]
    kernels = timeline.of("kernel")
    places = timeline.launched(kernels["tag"])
    kernels, places = kernels[places >= 0], places[places >= 0]
    allocated, used = timeline.launches.allocated[places], timeline.launches.used[places]
    return {
        "resident": highest(machine["end_ns"], machine["resident_bytes"].astype(np.float64), at),
        "allocated": highest(kernels["start_ns"], allocated, at),
        "dead": highest(kernels["start_ns"], allocated - used, at),
    }


@dataclass
class Segment:
    """What is drawn as one bar: activities of one kind, one after the other. ns, bytes; `stall_ns`:
    of kernels, waiting for memory.
    """

    lane: str
    kind: str
    start: float
    end: float
    count: int
    bytes: int
    stall_ns: float
    place: int  # of its first launch in the trace, -1 for other kinds


def segments(timeline: Timeline, start: float, end: float, parts: int) -> list[Segment]:
    """The lanes between two times: what is shorter than that part of the time is drawn together
    with its neighbours.
    """
    least = (end - start) / parts
    made: list[Segment] = []
    for lane, kinds in LANES.items():
        for kind in kinds:
            records = timeline.of(kind)
            records = records[(records["end_ns"] >= start) & (records["start_ns"] <= end)]
            places = (
                timeline.launched(records["tag"]) if kind == "kernel" else np.full(len(records), -1)
            )
            latest: Segment | None = None
            for record, place in zip(records.tolist(), places.tolist(), strict=True):
                _, _, count, _, _, size, _, first, last, stall = record
                first, last = max(first, start), min(last, end)
                if (
                    latest is not None
                    and first - latest.end < least
                    and max(last, latest.end) - latest.start <= least
                ):
                    latest.end = max(latest.end, last)
                    latest.count += count
                    latest.bytes += size
                    latest.stall_ns += stall
                else:
                    latest = Segment(lane, kind, first, last, count, size, stall, place)
                    made.append(latest)
    return made


def steady_step(timeline: Timeline) -> tuple[float, float]:
    """The last step but one, which another follows and others went before; the whole run where
    there are too few. ns.
    """
    if len(timeline.steps) >= 3:
        return timeline.steps[-3], timeline.steps[-2]
    return 0.0, timeline.ns
