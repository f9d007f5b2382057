"""Statistics of runs that never were, put together as the launcher does it."""

from __future__ import annotations

from typing import Any

from deepum.configuration.settings import SETTINGS
from deepum.statistics.collect import Reports
from deepum.statistics.run import merge

GIB = 1 << 30
MACHINE = "v100-16gb"
KERNELS = 60  # of a step


def timeline(
    seconds: list[float],
    compute_s: float = 0.03,
    faults: int = 0,
    batches: int = 0,
    demand: int = 0,
    bytes_in: int = 0,
    bytes_out: int = 0,
) -> list[dict[str, Any]]:
    """A wait at the start and behind each step, of which each is like the others but for its
    seconds.
    """
    points, at = [], 0.0
    for number, lasting in enumerate([0.0, *seconds]):
        at += lasting
        points.append(
            {
                "t_s": at,
                "compute_s": number * compute_s,
                "kernels": number * KERNELS,
                "faults": number * faults,
                "fault_batches": number * batches,
                "bytes_demand": number * demand,
                "bytes_h2d": number * bytes_in,
                "bytes_d2h": number * bytes_out,
            }
        )
    return points


def simulator(points: list[dict[str, Any]], pid: int = 1, **changed: Any) -> dict[str, Any]:
    """What the simulated GPU of a process leaves."""
    last = points[-1]
    counters = {
        "gpu_time_s": last["t_s"],
        "stall_s": 0.0,
        "copies": 0,
        "bytes_prefetched": last["bytes_h2d"] - last["bytes_demand"],
        "bytes_prefetched_used": last["bytes_h2d"] - last["bytes_demand"],
        "bytes_driver_evicted": 0,
        "bytes_prefetched_out": last["bytes_d2h"],
        "bytes_discarded": 0,
        "peak_resident_bytes": 16 * GIB,
        "peak_managed_bytes": 24 * GIB,
        **{key: value for key, value in last.items() if key != "t_s"},
        **changed,
    }
    return {
        "pid": pid,
        "machine": MACHINE,
        **counters,
        "devices": [{"memory_bytes": 16 * GIB, **counters}],
        "timeline": points,
    }


def session(pid: int = 1, core: dict[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    """What the daemon reports of a process; `core`: counters that are not 0."""
    zeros = dict.fromkeys(
        (
            *("launches", "iterations", "iteration_launches", "launches_over_capacity"),
            *("bytes_prefetched", "bytes_evicted", "peak_allocated_bytes", "peak_remote_bytes"),
            *("budget_overshoot_bytes", "peak_resident_bytes", "bytes_prefetched_again"),
        ),
        0,
    )
    return {
        "pid": pid,
        "core": zeros | (core or {}),
        "warnings": [],
        "handles_refused": 0,
        "allocations_refused": 0,
        "allocatable_bytes": 0,
        **changed,
    }


def merged(
    sessions: list[dict[str, Any]],
    simulators: list[dict[str, Any]],
    ended: str = "exited with code 0",
    policy: str = "correlation",
    **values: Any,
) -> dict[str, Any]:
    """The statistics; `values`: settings that are not the default's."""
    settings = {setting.name: setting.default for setting in SETTINGS} | {"policy": policy} | values
    device, cards = (f"sim:{MACHINE}", []) if simulators else ("cuda", [16 * GIB])
    reports = Reports(sessions, simulators)
    return merge(reports, device, settings, [], cards, ended, 12.5)


def run(points: list[dict[str, Any]], *, policy: str = "correlation", **changed: Any) -> Any:
    """Statistics of one process on the simulated GPU, which counts a kernel for each launch."""
    kernels = points[-1]["kernels"]
    core = {"launches": kernels, "iterations": len(points) - 2, "iteration_launches": KERNELS}
    return merged([session(core=core)], [simulator(points, **changed)], policy=policy)


LINK = timeline([0.08] * 8, bytes_in=GIB // 2, bytes_out=GIB // 2)
FAULTS = timeline([0.4] * 8, faults=3000, batches=80, demand=GIB, bytes_in=GIB, bytes_out=GIB)
FITS = timeline([0.03] * 8)
