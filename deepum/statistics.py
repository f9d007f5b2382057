"""A run's statistics: what the daemon's sessions and the simulated GPUs counted, summed. docs/statistics.md says what each key means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deepum.collect import Reports
from deepum.settings import Value

VERSION = 1
KEYS: dict[str, str] = {
    "version": "of this format; rises when a key changes its meaning or goes",
    "device": "`sim:MACHINE` or `cuda`",
    "policy": "`on-demand` or `correlation`",
    "prefetch_degree": "launches that the chain may run ahead",
    "gpu_time_s": "seconds of GPU time until the last work completed, virtual; simulated GPU only",
    "kernels": "kernels that ran; on a real GPU, launches seen",
    "execution_ids": "execution IDs known at the end",
    "faults": "64 KiB regions that a kernel missed; simulated GPU only",
    "fault_batches": "batches in which these were serviced; simulated GPU only",
    "bytes_h2d": "bytes moved from host to GPU, all causes; simulated GPU only",
    "bytes_d2h": "bytes moved from GPU to host, all causes; simulated GPU only",
    "bytes_prefetched": "bytes prefetched: moved on the simulated GPU, asked for on a real one",
    "bytes_prefetched_used": "of these, bytes that a kernel accessed before they left again; simulated GPU only",
    "prefetch_coverage": "bytes_prefetched_used / (that + bytes moved in by faults); simulated GPU only",
    "prefetch_accuracy": "bytes_prefetched_used / bytes_prefetched; simulated GPU only",
    "bytes_evicted": "bytes evicted: by us and by the driver on the simulated GPU; on a real one, asked for by us",
    "bytes_invalidated": "bytes dropped without a copy because their content was dead",
    "peak_resident_bytes": "most GPU memory in use by managed memory at a time, in one process; on a real GPU, as believed by the core",
    "window_mistakes": "blocks evicted that were needed again at once, or fetched for nothing; each narrows the window",
    "launches_over_capacity": "launches that alone need more GPU memory than there is for managed memory; they run, the driver makes room",
    "budget_overshoot_bytes": "most GPU memory in use beyond --gpu-memory, by the driver's free memory after waits; null without",
    "peak_remote_bytes": "memory advised to stay on the host, read and written over the link: the most at a time, in one process",
    "peak_allocated_bytes": "most memory allocated at a time, in one process",
    "handles_refused": "requests to share managed memory with other processes or devices that the driver refused; see sharing.md",
    "table_bytes": "memory of the learned tables",
    "daemon_events": "events that the daemon took",
    "warnings": "list of texts: whatever makes the figures doubtful",
    "devices": "list, one a GPU: `memory_bytes`, `gpu_time_s`, `kernels`, `faults`, `bytes_h2d`, `bytes_d2h`, `bytes_prefetched`, "
    "`bytes_evicted` of all processes, `peak_resident_bytes` of one; simulated GPU only",
    "processes": "list of `pid`, `session` (the daemon's counters), `simulated` (the simulated GPU's); null where there is none",
}
_SESSION_WARNINGS = {
    "events_lost": "{} events were lost: the daemon was too slow",
    "malformed_events": "{} events made no sense and were left out",
    "block_mismatches": "{} reports of PyTorch's allocator disagreed with our account",
}
_OF_DEVICES = ("gpu_time_s", "kernels", "faults", "bytes_h2d", "bytes_d2h", "bytes_prefetched")
_LEFT = ("bytes_prefetched_out", "bytes_driver_evicted")
_REFUSED = "refused requests to share managed memory with other processes or devices: {}; --plain-memory helps (docs/sharing.md)"


def _sum(parts: list[dict[str, Any]], key: str) -> int | float | None:
    return sum(part.get(key, 0) for part in parts) if parts else None


def _most(parts: list[dict[str, Any]], key: str) -> int | None:
    return max(part.get(key, 0) for part in parts) if parts else None


def _unsure(launches: int, kernels: list[str]) -> str:
    writers = f", or {kernels[0]} or another kernel that the simulated GPU does not know did" if kernels else ""
    return (
        f"{launches} launches read memory that was discarded and that no known kernel has written since: nobody wrote it{writers}; "
        "no error (docs/simulated-gpu.md, Discarded memory)"
    )


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def merge(reports: Reports, device: str, values: Mapping[str, Value], warnings: list[str]) -> dict[str, Any]:
    """The object that `--stats` writes; its keys are KEYS. Counts of several processes are added, peaks are the largest process's.

    What nobody could count is null: on a real GPU the driver does not tell of faults and transfers.
    """
    cores = [session["core"] for session in reports.sessions if isinstance(session.get("core"), dict)]
    simulators = reports.simulators
    said = list(reports.warnings) + warnings
    for session in reports.sessions:
        said += [f"process {session.get('pid')}: {text}" for text in session.get("warnings", [])]
        counted = session.get("core", {})
        said += [
            f"process {session.get('pid')}: {text.format(counted[key])}" for key, text in _SESSION_WARNINGS.items() if counted.get(key)
        ]
        if refused := session.get("handles_refused"):
            said.append(f"process {session.get('pid')}: {_REFUSED.format(refused)}")
    for simulator in simulators:
        if names := simulator.get("not_simulated"):
            said.append(f"process {simulator.get('pid')}: called functions that are not simulated: {', '.join(names[:8])}")
        if names := simulator.get("unparsed_kernels"):
            said.append(f"process {simulator.get('pid')}: {len(names)} kernels whose parameters are unknown, such as {names[0]}")
        if unsure := simulator.get("discarded_uses", 0) - simulator.get("discarded_uses_sure", 0):
            said.append(f"process {simulator.get('pid')}: {_unsure(unsure, simulator.get('general_kernels', []))}")
    used, demand = _sum(simulators, "bytes_prefetched_used"), _sum(simulators, "bytes_demand")
    prefetched = _sum(simulators, "bytes_prefetched") if simulators else _sum(cores, "bytes_prefetched")
    evicted = [_sum(simulators, key) or 0 for key in _LEFT]
    settings = reports.sessions[0].get("settings", {}) if reports.sessions else {}
    return {
        "version": VERSION,
        "device": device,
        "policy": settings.get("policy", values["policy"]),
        "prefetch_degree": settings.get("prefetch_degree", values["prefetch_degree"]),
        "gpu_time_s": _sum(simulators, "gpu_time_s"),
        "kernels": _sum(simulators, "kernels") if simulators else _sum(cores, "launches"),
        "execution_ids": _sum(cores, "execution_ids"),
        "faults": _sum(simulators, "faults"),
        "fault_batches": _sum(simulators, "fault_batches"),
        "bytes_h2d": _sum(simulators, "bytes_h2d"),
        "bytes_d2h": _sum(simulators, "bytes_d2h"),
        "bytes_prefetched": prefetched,
        "bytes_prefetched_used": used,
        "prefetch_coverage": _share(used, used + demand) if used is not None and demand is not None else None,
        "prefetch_accuracy": _share(used, prefetched) if simulators else None,
        "bytes_evicted": sum(evicted) if simulators else _sum(cores, "bytes_evicted"),
        "bytes_invalidated": _sum(simulators, "bytes_discarded") if simulators else _sum(cores, "bytes_invalidated"),
        "peak_resident_bytes": _most(simulators, "peak_resident_bytes") if simulators else _most(cores, "peak_resident_bytes"),
        "window_mistakes": _sum(cores, "window_mistakes"),
        "launches_over_capacity": _sum(cores, "launches_over_capacity"),
        "budget_overshoot_bytes": _most(cores, "budget_overshoot_bytes") if values["gpu_memory"] is not None else None,
        "peak_remote_bytes": _most(cores, "peak_remote_bytes"),
        "peak_allocated_bytes": _most(simulators, "peak_managed_bytes") if simulators else _most(cores, "peak_allocated_bytes"),
        "handles_refused": _sum(reports.sessions, "handles_refused"),
        "table_bytes": _sum(cores, "table_bytes"),
        "daemon_events": _sum(cores, "events"),
        "warnings": said,
        "devices": _devices(simulators) if simulators else None,
        "processes": _processes(reports),
    }


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
    simulated = {simulator.get("pid"): simulator for simulator in reports.simulators}
    rows = [
        {"pid": session.get("pid"), "session": session, "simulated": simulated.pop(session.get("pid"), None)}
        for session in reports.sessions
    ]
    return rows + [{"pid": pid, "session": None, "simulated": simulator} for pid, simulator in simulated.items()]


def size(count: float | None) -> str:
    """A number of bytes for people."""
    if count is None:
        return "?"
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count >= 1024**power:
            return f"{count / 1024**power:.1f} {unit}"
    return f"{count:.0f} B"


def summary(report: Mapping[str, Any]) -> list[str]:
    """A few lines for people, without the prefix."""
    warnings = [f"warning: {text}" for text in report["warnings"]]
    if not report["processes"]:
        return [*warnings, "the program used no GPU"]
    time = f" in {report['gpu_time_s']:.3f} s of GPU time" if report["gpu_time_s"] is not None else ""
    policy = f"{report['policy']}, N = {report['prefetch_degree']}" if report["policy"] == "correlation" else report["policy"]
    lines = [f"{report['device']}, {policy}: {report['kernels']} kernels{time}"]
    if report["faults"] is not None:
        moved = f"{size(report['bytes_h2d'])} to the GPU, {size(report['bytes_d2h'])} back"
        lines.append(f"{report['faults']} faults in {report['fault_batches']} batches; {moved}")
    shares = [
        f"{report[key]:.1%} {text}"
        for key, text in (("prefetch_coverage", "of what was needed"), ("prefetch_accuracy", "used"))
        if report[key] is not None
    ]
    told = f" ({', '.join(shares)})" if shares and report["bytes_prefetched"] else ""
    lines.append(f"prefetched {size(report['bytes_prefetched'])}{told}, evicted {size(report['bytes_evicted'])}")
    lines.append(f"peak {size(report['peak_resident_bytes'])} on the GPU, {size(report['peak_allocated_bytes'])} allocated")
    devices = report["devices"] or []
    for ordinal, counted in enumerate(devices if len(devices) > 1 else []):
        moved = f"{size(counted['bytes_prefetched'])} prefetched, {size(counted['bytes_evicted'])} evicted"
        peak = f"peak {size(counted['peak_resident_bytes'])} of {size(counted['memory_bytes'])}"
        lines.append(f"GPU {ordinal}: {counted['kernels']} kernels, {counted['faults']} faults; {moved}; {peak}")
    if report["launches_over_capacity"]:
        lines.append(f"{report['launches_over_capacity']} launches alone needed more GPU memory than they may have; they ran")
    if report["peak_remote_bytes"]:
        lines.append(f"{size(report['peak_remote_bytes'])} stayed on the host, of which kernels use a few rows")
    if report["budget_overshoot_bytes"]:
        lines.append(f"the GPU's memory in use exceeded the budget by up to {size(report['budget_overshoot_bytes'])}")
    return warnings + lines
