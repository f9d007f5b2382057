"""A run's statistics: what the daemon's sessions and the simulated GPUs counted, summed.
docs/statistics.md says what each key means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deepum.configuration.setting import Value
from deepum.statistics.collect import Reports
from deepum.statistics.keys import VERSION
from deepum.statistics.steps import Step, last_step, repeated_steps, steady_step

_COUNTED_BY_THE_CORE = frozenset(
    {
        "execution_ids",
        "iterations",
        "iteration_launches",
        "window_mistakes",
        "launches_over_capacity",
        "budget_overshoot_bytes",
        "peak_remote_bytes",
        "table_bytes",
        "daemon_events",
    }
)
_BY_SESSIONS = ("handles_refused", "allocations_refused", "allocatable_bytes")
_SHARES = frozenset({"prefetch_coverage", "prefetch_accuracy"})
_SESSION_WARNINGS = {
    "events_lost": "{} events were lost: the daemon was too slow",
    "malformed_events": "{} events made no sense and were left out",
    "block_mismatches": "{} reports of PyTorch's allocator disagreed with our account",
}
_OF_DEVICES = ("gpu_time_s", "kernels", "faults", "bytes_h2d", "bytes_d2h", "bytes_prefetched")
_LEFT = ("bytes_prefetched_out", "bytes_driver_evicted")
_REFUSED = (
    "refused requests to share managed memory with other processes or devices: {}; --plain-memory "
    "helps (docs/sharing.md)"
)


def _sum(parts: list[dict[str, Any]], key: str) -> int | float | None:
    return sum(part.get(key, 0) for part in parts) if parts else None


def _all(parts: list[dict[str, Any]], key: str) -> list[Any]:
    return [part.get(key) for part in parts]


def _most(parts: list[dict[str, Any]], key: str) -> Any:
    return max(part.get(key, 0) for part in parts) if parts else None


def _unsure(launches: int, kernels: list[str]) -> str:
    writers = (
        f", or {kernels[0]} or another kernel that the simulated GPU does not know did"
        if kernels
        else ""
    )
    return (
        f"{launches} launches read memory that was discarded and that no known kernel has written "
        f"since: nobody wrote it{writers}; no error (docs/simulated-gpu.md, Discarded memory)"
    )


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _gpu_memory(
    simulators: list[dict[str, Any]], cards: Sequence[int], budget: Value
) -> int | None:
    cards = cards or [
        int(device["memory_bytes"])
        for simulator in simulators
        for device in simulator.get("devices", [])
    ]
    return min(
        [*cards, *(int(part) for part in str(budget).split(","))] if budget is not None else cards,
        default=None,
    )


def _why_missing(key: str, device: str, reports: Reports, cores: list[dict[str, Any]]) -> str:
    if not reports.sessions and not reports.simulators:
        return "no process used the GPU, as far as is known"
    if key == "budget_overshoot_bytes" and cores:
        return "--gpu-memory was not given"
    if key == "plans" and reports.sessions:
        return "--policy planned was not given"
    if key in ("last_step", "steady_step") and reports.simulators:
        return _why_no_step(key, reports.simulators)
    if key in (*_BY_SESSIONS, "plans") or key in _COUNTED_BY_THE_CORE:
        return "no process had a session with the daemon that was reported"
    if device == "cuda":
        return "a real GPU's driver does not tell it"
    return (
        "nothing was moved"
        if key in _SHARES and reports.simulators
        else "no simulated GPU left its figures"
    )


def _why_no_step(key: str, simulators: list[dict[str, Any]]) -> str:
    if key == "last_step" and len(simulators) > 1:
        return "there are several processes"
    longest = _longest(simulators)
    if longest is None or not longest.get("timeline"):
        return "the simulated GPU left no timeline"
    return "the program's last waits have no like before them"


def merge(
    reports: Reports,
    device: str,
    values: Mapping[str, Value],
    warnings: list[str],
    cards: Sequence[int],
    ended: str,
    elapsed_s: float,
) -> dict[str, Any]:
    """The object that `--stats` writes; its keys are KEYS. Counts of several processes are added,
    peaks are the largest process's.

    What nobody could count is null, and `missing` says why. `cards`: memory of the real GPUs;
    `ended`, `elapsed_s`: how the program did, and after how many seconds.
    """
    merged = _merge(reports, device, values, warnings, cards, ended, elapsed_s)
    cores = [
        session["core"] for session in reports.sessions if isinstance(session.get("core"), dict)
    ]
    merged["missing"] = {
        key: _why_missing(key, device, reports, cores)
        for key, value in merged.items()
        if value is None and key != "missing"
    }
    return merged


def _merge(
    reports: Reports,
    device: str,
    values: Mapping[str, Value],
    warnings: list[str],
    cards: Sequence[int],
    ended: str,
    elapsed_s: float,
) -> dict[str, Any]:
    cores = [
        session["core"] for session in reports.sessions if isinstance(session.get("core"), dict)
    ]
    simulators = reports.simulators
    messages = list(reports.warnings) + warnings
    for session in reports.sessions:
        messages += [
            f"process {session.get('pid')}: {text}" for text in session.get("warnings", [])
        ]
        counted = session.get("core", {})
        messages += [
            f"process {session.get('pid')}: {text.format(counted[key])}"
            for key, text in _SESSION_WARNINGS.items()
            if counted.get(key)
        ]
        if refused := session.get("handles_refused"):
            messages.append(f"process {session.get('pid')}: {_REFUSED.format(refused)}")
    for simulator in simulators:
        if names := simulator.get("not_simulated"):
            messages.append(
                f"process {simulator.get('pid')}: called functions that are not simulated: "
                f"{', '.join(names[:8])}"
            )
        if names := simulator.get("unparsed_kernels"):
            messages.append(
                f"process {simulator.get('pid')}: {len(names)} kernels whose parameters are "
                f"unknown, such as {names[0]}"
            )
        if unsure := simulator.get("discarded_uses", 0) - simulator.get("discarded_uses_sure", 0):
            messages.append(
                f"process {simulator.get('pid')}: "
                f"{_unsure(unsure, simulator.get('general_kernels', []))}"
            )
    used, demand = _sum(simulators, "bytes_prefetched_used"), _sum(simulators, "bytes_demand")
    prefetched = (
        _sum(simulators, "bytes_prefetched") if simulators else _sum(cores, "bytes_prefetched")
    )
    evicted = [_sum(simulators, key) or 0 for key in _LEFT]
    settings = reports.sessions[0].get("settings", {}) if reports.sessions else {}
    steps = _steps(simulators)
    return {
        "version": VERSION,
        "device": device,
        "policy": settings.get("policy", values["policy"]),
        "prefetch_degree": settings.get("prefetch_degree", values["prefetch_degree"]),
        "ended": ended,
        "elapsed_s": elapsed_s,
        "gpu_memory_bytes": _gpu_memory(simulators, cards, values["gpu_memory"]),
        "gpu_time_s": _sum(simulators, "gpu_time_s"),
        "gpu_time_max_s": _most(simulators, "gpu_time_s"),
        "compute_s": _sum(simulators, "compute_s"),
        "last_step": last_step(steps) if len(simulators) == 1 else None,
        "steady_step": _steady_step(steps, simulators, reports.sessions),
        **_iterations(cores),
        "kernels": _sum(simulators, "kernels") if simulators else _sum(cores, "launches"),
        "execution_ids": _sum(cores, "execution_ids"),
        "faults": _sum(simulators, "faults"),
        "fault_batches": _sum(simulators, "fault_batches"),
        "bytes_h2d": _sum(simulators, "bytes_h2d"),
        "bytes_d2h": _sum(simulators, "bytes_d2h"),
        "bytes_prefetched": prefetched,
        "bytes_prefetched_again": _sum(cores, "bytes_prefetched_again"),
        "bytes_prefetched_used": used,
        "prefetch_coverage": _share(used, used + demand)
        if used is not None and demand is not None
        else None,
        "prefetch_accuracy": _share(used, prefetched) if simulators else None,
        "bytes_evicted": sum(evicted) if simulators else _sum(cores, "bytes_evicted"),
        "bytes_invalidated": _sum(simulators, "bytes_discarded")
        if simulators
        else _sum(cores, "bytes_invalidated"),
        "peak_resident_bytes": _most(simulators, "peak_resident_bytes")
        if simulators
        else _most(cores, "peak_resident_bytes"),
        "window_mistakes": _sum(cores, "window_mistakes"),
        "launches_over_capacity": _sum(cores, "launches_over_capacity"),
        "budget_overshoot_bytes": _most(cores, "budget_overshoot_bytes")
        if values["gpu_memory"] is not None
        else None,
        "peak_remote_bytes": _most(cores, "peak_remote_bytes"),
        "peak_allocated_bytes": _most(simulators, "peak_managed_bytes")
        if simulators
        else _most(cores, "peak_allocated_bytes"),
        "allocations_refused": _sum(reports.sessions, "allocations_refused"),
        "allocatable_bytes": min(
            filter(None, _all(reports.sessions, "allocatable_bytes")), default=None
        ),
        "handles_refused": _sum(reports.sessions, "handles_refused"),
        "table_bytes": _sum(cores, "table_bytes"),
        "daemon_events": _sum(cores, "events"),
        "plans": _plans(reports.sessions),
        "remat": reports.remat,
        "warnings": messages,
        "missing": None,
        "devices": _devices(simulators) if simulators else None,
        "processes": _processes(reports),
    }


def _longest(simulators: list[dict[str, Any]]) -> dict[str, Any] | None:
    return max(simulators, key=lambda one: float(one.get("gpu_time_s", 0)), default=None)


def _steps(simulators: list[dict[str, Any]]) -> list[Step]:
    longest = _longest(simulators)
    return repeated_steps(longest.get("timeline", [])) if longest is not None else []


def _steady_step(
    steps: list[Step], simulators: list[dict[str, Any]], sessions: list[dict[str, Any]]
) -> dict[str, Any] | None:
    longest = _longest(simulators) or {}
    core = next((one.get("core") for one in sessions if one.get("pid") == longest.get("pid")), None)
    return steady_step(steps, core, longest.get("kernels", 0))


def _plans(sessions: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    planning = [session["plans"] for session in sessions if "plans" in session]
    return [plan for plans in planning for plan in plans] if planning else None


def _iterations(cores: list[dict[str, Any]]) -> dict[str, int | None]:
    keys = ("iterations", "iteration_launches")
    most = max(cores, key=lambda core: int(core.get(keys[0], 0)), default=None)
    return {key: most.get(key, 0) if most is not None else None for key in keys}


def _devices(simulators: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """By ordinal; every process of a run has as many."""
    rows = []
    for parts in zip(*(simulator.get("devices", []) for simulator in simulators), strict=False):
        row: dict[str, Any] = {"memory_bytes": _most(list(parts), "memory_bytes")}
        row |= {key: _sum(list(parts), key) for key in _OF_DEVICES}
        row["bytes_evicted"] = sum(_sum(list(parts), key) or 0 for key in _LEFT)
        row["peak_resident_bytes"] = _most(list(parts), "peak_resident_bytes")
        rows.append(row)
    return rows


def _processes(reports: Reports) -> list[dict[str, Any]]:
    """What a process's session and its simulated GPU counted, side by side; a process that replaced
    itself by exec has several of each.
    """
    simulated: dict[Any, list[dict[str, Any]]] = {}
    for simulator in reports.simulators:
        simulated.setdefault(simulator.get("pid"), []).append(simulator)
    rows = []
    for session in reports.sessions:
        of_process = simulated.get(session.get("pid"))
        rows.append(
            {
                "pid": session.get("pid"),
                "session": session,
                "simulated": of_process.pop(0) if of_process else None,
            }
        )
    return rows + [
        {"pid": pid, "session": None, "simulated": simulator}
        for pid, rest in simulated.items()
        for simulator in rest
    ]
