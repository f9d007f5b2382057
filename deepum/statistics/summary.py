"""A run's statistics for people: a few lines, of which the first say how it went and whether there
is anything to do.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from deepum.sizes import size
from deepum.statistics import recomputed
from deepum.statistics.run import process_fits

_MOST_PROCESSES = 8  # that are told of one by one


def summary(report: Mapping[str, Any], written: Sequence[str] = ()) -> list[str]:
    """The lines, without the prefix. `written`: files of this run that `deepum report` draws."""
    warnings = [f"warning: {text}" for text in report["warnings"]]
    remat = recomputed.lines(report.get("remat") or [])
    if not report["processes"]:
        return [*remat, *warnings, *([] if remat else ["the program used no GPU"])]
    pointer = (
        [f"to see it drawn: deepum report {' '.join(map(shlex.quote, written))}"] if written else []
    )
    return [*_outcome(report), *_figures(report), *remat, *warnings, *pointer]


def _outcome(report: Mapping[str, Any]) -> list[str]:
    policy = report["policy"]
    if policy != "on-demand":
        policy += f" (predicts up to N = {report['prefetch_degree']} launches ahead)"
    count = len(report["processes"])
    ran = f"{report['kernels']} kernels" + (f" of {count} processes" if count > 1 else "")
    simulated = report["devices"] is not None
    if not simulated or report["gpu_time_s"] is None:
        lines = [f"{report['device']}, {policy}: {ran}"]
    elif count == 1:
        computed = (
            f", of which they computed {report['compute_s']:.3f} s"
            if report.get("compute_s") is not None
            else ""
        )
        lines = [
            (
                f"{report['device']}, {policy}: {ran} in {report['gpu_time_s']:.3f} s of virtual "
                f"GPU time{computed}"
            )
        ]
    else:
        longest = max(
            (one["simulated"]["gpu_time_s"] for one in report["processes"] if one["simulated"]),
            default=0.0,
        )
        times = (
            f"{longest:.3f} s of virtual GPU time in the longest, {report['gpu_time_s']:.3f} s in "
            f"their sum"
        )
        lines = [f"{report['device']}, {policy}: {ran}; {times}"]
        lines.append(
            "each process had simulated GPUs of its own: the times do not add up, and how "
            "processes share a card is not simulated"
        )
    return lines + _fits(report) + _iterations(report) + _last_step(report)


def _fits(report: Mapping[str, Any]) -> list[str]:
    # Earlier versions did not tell the first.
    memory, allocated = report.get("gpu_memory_bytes"), report["peak_allocated_bytes"]
    if memory is None or allocated is None:
        return []
    fitting = [process_fits(process, memory) for process in report["processes"]]
    if None in fitting:
        return []
    which = "it" if len(fitting) == 1 else "each process"
    if all(fitting):
        return [
            (
                f"{which} fits in GPU memory ({size(allocated)} of {size(memory)} at most): "
                f"nothing had to be moved, nothing is to be done"
            )
        ]
    if len(fitting) > 1:
        which = f"{fitting.count(False)} of {len(fitting)} processes"
    verb = "needs" if len(fitting) == 1 else "need"
    share = f", {allocated / memory:.2f} times" if allocated > memory else ""
    return [
        (
            f"{which} {verb} more than GPU memory holds ({size(allocated)} allocated, "
            f"{size(memory)} there{share}): the rest was moved"
        )
    ]


def _iterations(report: Mapping[str, Any]) -> list[str]:
    count = report.get("iterations")  # earlier versions did not tell it
    if not count:
        return []
    launches = report["iteration_launches"]
    each = f", of {launches} launches each at the end" if launches else ""
    steps = "1 step was" if count == 1 else f"{count} steps were"
    most = " of the process that made most" if len(report["processes"]) > 1 else ""
    return [f"{steps} found in the launches{most}{each}"]


def _last_step(report: Mapping[str, Any]) -> list[str]:
    step = report.get("last_step")  # earlier versions did not tell it
    if not step:
        return []
    moved = (
        f"{step['faults']} faults, {size(step['bytes_h2d'])} to the GPU, "
        f"{size(step['bytes_d2h'])} back"
    )
    return [
        (
            f"the last step: {step['kernels']} kernels in {step['s'] * 1e3:.1f} ms, computing for "
            f"{step['compute_s'] * 1e3:.1f} ms; {moved}"
        )
    ]


def _figures(report: Mapping[str, Any]) -> list[str]:
    lines = []
    if report["faults"] is not None:
        moved = f"{size(report['bytes_h2d'])} to the GPU, {size(report['bytes_d2h'])} back"
        lines.append(f"{report['faults']} faults in {report['fault_batches']} batches; {moved}")
    shares = [
        f"{report[key]:.1%} {text}"
        for key, text in (
            ("prefetch_coverage", "of what was needed"),
            ("prefetch_accuracy", "used"),
        )
        if report[key] is not None
    ]
    told = f" ({', '.join(shares)})" if shares and report["bytes_prefetched"] else ""
    # What a real driver made of it nobody tells.
    counted = report["devices"] is not None
    verbs = ("prefetched", "evicted") if counted else ("asked to prefetch", "to evict")
    lines.append(
        f"{verbs[0]} {size(report['bytes_prefetched'])}{told}, {verbs[1]} "
        f"{size(report['bytes_evicted'])}"
    )
    if report["bytes_prefetched_again"]:
        lines.append(
            f"asked for again, though it was believed to be there: "
            f"{size(report['bytes_prefetched_again'])}"
        )
    where = "on the GPU" if counted else "believed on the GPU"
    lines.append(
        f"peak {size(report['peak_resident_bytes'])} {where}, "
        f"{size(report['peak_allocated_bytes'])} allocated"
    )
    lines += _processes(report["processes"])
    devices = report["devices"] or []
    for ordinal, counted in enumerate(devices if len(devices) > 1 else []):
        moved = (
            f"{size(counted['bytes_prefetched'])} prefetched, {size(counted['bytes_evicted'])} "
            f"evicted"
        )
        peak = f"peak {size(counted['peak_resident_bytes'])} of {size(counted['memory_bytes'])}"
        lines.append(
            f"GPU {ordinal}: {counted['kernels']} kernels, {counted['faults']} faults; "
            f"{moved}; {peak}"
        )
    lines += _plans(report)
    if report["launches_over_capacity"]:
        lines.append(
            f"{report['launches_over_capacity']} launches alone needed more GPU memory than "
            f"they may have; they ran"
        )
    if report["peak_remote_bytes"]:
        lines.append(
            f"{size(report['peak_remote_bytes'])} stayed on the host, of which kernels use a "
            f"few rows"
        )
    if report["budget_overshoot_bytes"]:
        over = size(report["budget_overshoot_bytes"])
        if counted:
            lines.append(f"the GPU's memory in use exceeded the budget by up to {over}")
        else:
            lines.append(
                f"up to {over} more than the budget were not free of the GPU; the driver may "
                f"count what was evicted among them"
            )
    return lines


def _plans(report: Mapping[str, Any]) -> list[str]:
    plans = report.get("plans")  # earlier versions did not tell them
    if plans is None:
        return []
    if not plans:
        return ["plans: none, since no iteration was seen to repeat that memory is short for"]
    kept = [plan for plan in plans if plan["kept"]]
    if not kept:
        why = plans[-1]["reason"] or "the program ended before one had been tried"
        return [f"plans: none kept: {why}"]
    plan = kept[-1]
    if plan["before_us"] is None:
        return [f"plans: one was given ({plan['moves']} moves an iteration)"]
    # The plans before it are of the same iteration, until there is one of another.
    before = next(
        one["before_us"]
        for one in plans
        if one["launches"] == plan["launches"] and one["before_us"] is not None
    )
    return [
        f"plans: kept ({_duration(before)} an iteration before, "
        f"{_duration(plan['with_us'])} with it)"
    ]


def _duration(us: float) -> str:
    return f"{us / 1e6:.2f} s" if us >= 1e6 else f"{us / 1e3:.2f} ms"


def _processes(processes: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each of several."""
    lines = []
    for process in processes if len(processes) > 1 else []:
        simulated, core = process["simulated"], (process["session"] or {}).get("core") or {}
        if simulated is not None:
            text = (
                f"{simulated['kernels']} kernels in {simulated['gpu_time_s']:.3f} s, "
                f"{simulated['faults']} faults"
            )
            text += f"; {size(simulated['peak_managed_bytes'])} allocated"
        else:
            text = (
                f"{core.get('launches', 0)} kernels; {size(core.get('peak_allocated_bytes'))} "
                f"allocated"
            )
        lines.append(f"process {process['pid']}: {text}")
    further = len(lines) - _MOST_PROCESSES
    return (
        lines
        if further <= 0
        else [*lines[:_MOST_PROCESSES], f"and {further} further processes (--stats has them)"]
    )
