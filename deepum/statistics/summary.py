"""A run's statistics for people: about ten lines, of which the first say how it went and whether
there is anything to do. All figures are in the statistics themselves (`--stats`).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from deepum.sizes import size
from deepum.statistics import recomputed
from deepum.statistics.outcome import Outcome, outcome
from deepum.statistics.verdict import EXPLAINED, NAMES, Interval, Limit

_MOST_PROCESSES = 8  # that are told of one by one
_MOST_WARNINGS = 4
_LOST = (Limit.FAULTS, Limit.LINK)


def summary(report: Mapping[str, Any]) -> list[str]:
    """The lines, without the prefix."""
    remat, warnings = recomputed.lines(report.get("remat") or []), _warnings(report["warnings"])
    if not report["processes"]:
        ended = report.get("ended", "")
        why = f"; it {ended}" if "was ended" in ended else ""
        return [*remat, *warnings, *([] if remat else [f"the program used no GPU{why}"])]
    result = outcome(report)
    return [
        *_went(report, result),
        *_step(report, result),
        *_verdict(result),
        *_moved(report, result),
        *_processes(report, result),
        *_memory(report, result),
        *_plans(report),
        *remat,
        *warnings,
    ]


def _warnings(texts: Sequence[str]) -> list[str]:
    further = len(texts) - _MOST_WARNINGS
    more = [f"and {further} further warnings (--stats has them)"] if further > 0 else []
    return [*(f"warning: {text}" for text in texts[:_MOST_WARNINGS]), *more]


def _went(report: Mapping[str, Any], result: Outcome) -> list[str]:
    """What ran, and whether it fits; if so, nothing else is worth a line."""
    count = len(report["processes"])
    name = "kernels" if result.run.simulated else "launches"
    ran = f"{report['kernels']} {name}" + (f" of {count} processes" if count > 1 else "")
    if result.seconds is None:
        took = ""
    elif result.run.simulated:
        longest = " in the longest" if count > 1 else ""
        took = f" in {result.seconds:.3f} s of virtual GPU time{longest}"
    else:
        took = f"; the program took {result.seconds:.1f} s by the real clock"
    cost = f"; {_cost(result.whole, result.limit)}" if result.whole and not result.run.fits else ""
    first, *others = [
        f"{report['device']}, {report['policy']}: {ran}{took}{cost}",
        *_fits(report, result),
    ]
    return ["; ".join([first, *others])] if result.run.fits else [first, *others]


def _cost(interval: Interval, limited: Limit) -> str:
    """What of the time was not computing."""
    what = "lost to memory" if limited in _LOST else "no kernel computed"
    lost = f"{interval.lost:.0%}"
    return (
        f"kernels computed for {interval.compute_s:.3f} s, {what}: {interval.lost_s:.3f} s ({lost})"
    )


def _fits(report: Mapping[str, Any], result: Outcome) -> list[str]:
    # Earlier versions did not tell the first.
    memory, allocated = report.get("gpu_memory_bytes"), report["peak_allocated_bytes"]
    if memory is None or allocated is None or None in result.fitting:
        return []
    which = "it" if len(result.fitting) == 1 else "each process"
    if result.run.fits and result.run.failed is not None:
        return [
            f"{which} fitted in GPU memory ({size(allocated)} of {size(memory)} at most) until the "
            f"program {result.run.failed}"
        ]
    if result.run.fits:
        return [
            f"{which} fits in GPU memory ({size(allocated)} of {size(memory)} at most): nothing "
            f"had to be moved, nothing is to be done"
        ]
    if len(result.fitting) > 1:
        which = f"{result.fitting.count(False)} of {len(result.fitting)} processes"
    verb = "needs" if len(result.fitting) == 1 else "need"
    share = f", {allocated / memory:.2f} times" if allocated > memory else ""
    return [
        f"{which} {verb} more than GPU memory holds ({size(allocated)} allocated, "
        f"{size(memory)} there{share}): the rest was moved"
    ]


def _step(report: Mapping[str, Any], result: Outcome) -> list[str]:
    """What a step takes, or why nobody knows."""
    if result.run.fits:
        return []
    if result.step is None:
        if result.found:
            steps = "1 step was" if result.found == 1 else f"{result.found} steps were"
            why = (report.get("missing") or {}).get("steady_step", "")
            return [f"{steps} found in the launches; what one takes is not known: {why}"]
        return ["no steps were found: nothing in its launches repeats until the end"]
    step = result.step
    took = step.interval
    longest = ", of the process that took longest" if len(report["processes"]) > 1 else ""
    mean = f"the mean of {step.mean_of} of {step.steps}{longest}"
    lost = "lost to memory" if result.limit in _LOST else "no kernel computed"
    line = (
        f"a step takes {took.seconds * 1e3:.1f} ms ({mean}), {lost}: {took.lost_s * 1e3:.1f} ms "
        f"({took.lost:.0%}); {took.faults:.0f} faults, {size(took.bytes_in)} to the GPU, "
        f"{size(took.bytes_out)} back"
    )
    return [line, *([f"doubtful: {step.doubt}"] if step.doubt else [])]


def _verdict(result: Outcome) -> list[str]:
    """What limits, and what to try."""
    lines = [] if result.run.fits else [f"limit: {NAMES[result.limit]}: {EXPLAINED[result.limit]}"]
    if result.limit is Limit.UNKNOWN and not result.run.simulated and not result.run.fits:
        lines = [
            "time lost to memory: not known, since a real driver tells neither faults nor moves"
        ]
    return [*lines, *(f"try: {text}" for text in result.advice[:2])]


def _moved(report: Mapping[str, Any], result: Outcome) -> list[str]:
    if result.run.fits:
        return []
    if not result.run.simulated:
        # What a real driver made of it nobody tells.
        return [
            f"asked to prefetch {size(report['bytes_prefetched'])}, to evict "
            f"{size(report['bytes_evicted'])}; peak {size(report['peak_resident_bytes'])} believed "
            f"on the GPU"
        ]
    shares = [
        f"{report[key]:.0%} {text}"
        for key, text in (
            ("prefetch_coverage", "of what was needed"),
            ("prefetch_accuracy", "of it used"),
        )
        if report[key] is not None and report["bytes_prefetched"]
    ]
    prefetched = f"prefetched {size(report['bytes_prefetched'])}"
    return [
        f"in all {report['faults']} faults, {size(report['bytes_h2d'])} to the GPU, "
        f"{size(report['bytes_d2h'])} back; {', '.join([prefetched, *shares])}"
    ]


def _processes(report: Mapping[str, Any], result: Outcome) -> list[str]:
    """Of several processes or GPUs: a line each, and whether their times add up."""
    lines = []
    processes = report["processes"] if len(report["processes"]) > 1 else []
    if processes and result.run.simulated:
        lines.append(
            "each process had simulated GPUs of its own: the times do not add up, and how "
            "processes share a card is not simulated"
        )
    for process in processes[:_MOST_PROCESSES]:
        lines.append(f"process {process['pid']}: {_of_process(process)}")
    if (further := len(processes) - _MOST_PROCESSES) > 0:
        lines.append(f"and {further} further processes (--stats has them)")
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
    return lines


def _of_process(process: Mapping[str, Any]) -> str:
    simulated, core = process["simulated"], (process["session"] or {}).get("core") or {}
    if simulated is None:
        allocated = size(core.get("peak_allocated_bytes"))
        return f"{core.get('launches', 0)} launches; {allocated} allocated"
    return (
        f"{simulated['kernels']} kernels in {simulated['gpu_time_s']:.3f} s, "
        f"{simulated['faults']} faults; {size(simulated['peak_managed_bytes'])} allocated"
    )


def _memory(report: Mapping[str, Any], result: Outcome) -> list[str]:
    """Where memory ran out, or was near it, and what was beyond what it should be."""
    lines = []
    if result.run.refused or result.run.nearly_full:
        room = size(report["allocatable_bytes"])
        what = "GPU and host memory (--host-memory) together hold"
        lines.append(
            f"memory ran out: {result.run.refused} allocations were refused, beyond the {room} "
            f"that {what}"
            if result.run.refused
            else f"memory is nearly used up: {size(report['peak_allocated_bytes'])} of the {room} "
            f"that {what}"
        )
    if result.run.launches_over_capacity:
        lines.append(
            f"{result.run.launches_over_capacity} launches alone needed more GPU memory than they "
            f"may have; they ran"
        )
    if report["peak_remote_bytes"]:
        lines.append(
            f"{size(report['peak_remote_bytes'])} stayed on the host, of which kernels use a "
            f"few rows"
        )
    if report["budget_overshoot_bytes"]:
        over = size(report["budget_overshoot_bytes"])
        if result.run.simulated:
            lines.append(f"the GPU's memory in use exceeded the budget by up to {over}")
        else:
            lines.append(
                f"up to {over} more than the budget were not free of the GPU; the driver may "
                f"count what was evicted among them"
            )
    return lines


def places(report: Mapping[str, Any], drawn: Sequence[str], can_watch: bool) -> list[str]:
    """Where to look next, in a line, if it is worth one. `drawn`: arguments with which `deepum
    report` draws the run; `can_watch`: there is `deepum top`.
    """
    if not report["processes"]:
        return []
    fits = outcome(report).run.fits
    found = []
    if drawn:
        found.append(f"charts: deepum report {' '.join(map(shlex.quote, drawn))}")
    if not fits:
        if not drawn:
            found.append("charts: --stats FILE, then deepum report FILE")
        if can_watch:
            found.append("while it runs: deepum top")
        found.append("these lines: docs/usage.md")
    return [f"next: {'; '.join(found)}"] if found else []


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
