"""How a run came out, from its statistics: times, the step where there is one, and the verdict."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deepum.errors import DeepumError
from deepum.statistics import verdict
from deepum.statistics.verdict import Advice, Costs, Interval, Limit, Run

_NEAR = 0.95  # of what can be allocated
# What left a simulated GPU, by prefetches and by the driver.
_LEFT = ("bytes_prefetched_out", "bytes_driver_evicted")
_ALIKE = 0.25  # by which steps of the waits may differ from whole iterations of the launches


@dataclass(frozen=True)
class Step:
    """A step's mean over `mean_of` of the `steps` that were found. `doubt`: why it may be none."""

    interval: Interval
    kernels: float
    steps: int
    mean_of: int
    doubt: str | None


@dataclass(frozen=True)
class Outcome:
    """`seconds`: of the process that took longest, by the virtual clock on the simulated GPU, else
    of the program, by the real one; None where nobody knows. `whole`: of all processes, where times
    are virtual; `fitting`: by process, None where nobody knows. `found`: steps.
    """

    run: Run
    seconds: float | None
    whole: Interval | None
    step: Step | None
    found: int
    fitting: tuple[bool | None, ...]
    limit: Limit
    advice: tuple[Advice, ...]

    @property
    def clock(self) -> str:
        """Which clock the times are of."""
        return "virtual" if self.run.simulated else "real"


def outcome(report: Mapping[str, Any]) -> Outcome:
    """Of statistics as `deepum run --stats` writes them, of this version or an earlier one."""
    simulated = report["devices"] is not None
    whole, step = _whole(report), _step(report)
    memory = report.get("gpu_memory_bytes")
    fitting = tuple(
        None if memory is None else process_fits(process, memory) for process in report["processes"]
    )
    # Earlier versions did not tell of iterations.
    found = step.steps if step is not None else report.get("iterations") or 0
    run = Run(
        policy=str(report["policy"]),
        fits=None if None in fitting or not fitting else all(fitting),
        steps=found,
        simulated=simulated,
        launches_over_capacity=report.get("launches_over_capacity") or 0,
        refused=report.get("allocations_refused") or 0,
        nearly_full=near_the_end(report),
        # Only PyTorch tells what is dead.
        pytorch=bool(report["bytes_invalidated"]),
        recomputes=bool(report.get("remat")),
        coverage=report["prefetch_coverage"] if report["bytes_prefetched"] else None,
        failed=_failed(report),
    )
    limited = verdict.limit(
        step.interval if step is not None else whole, costs(str(report["device"]))
    )
    return Outcome(
        run,
        _seconds(report, simulated),
        whole,
        step,
        found,
        fitting,
        limited,
        tuple(verdict.advice(run, limited)),
    )


def process_fits(process: Mapping[str, Any], memory: int) -> bool | None:
    """Whether nothing of one of `processes` had to leave GPUs of this memory, since all of it has
    room; None where nobody knows.
    """
    simulated, core = process["simulated"], (process["session"] or {}).get("core")
    if simulated is not None:
        return not any(simulated.get(key) for key in _LEFT) and all(
            device["peak_managed_bytes"] <= device["memory_bytes"]
            for device in simulated["devices"]
        )
    return core["peak_allocated_bytes"] <= memory and not core["bytes_evicted"] if core else None


def near_the_end(report: Mapping[str, Any]) -> bool:
    """Whether a process allocated nearly all that it could."""
    return any(
        core.get("peak_allocated_bytes", 0) >= _NEAR * room
        for core, room in _rooms(report["processes"])
    )


def _rooms(
    processes: Sequence[Mapping[str, Any]],
) -> list[tuple[Mapping[str, Any], int]]:
    """What each process's core counted, and the bytes that the process could allocate."""
    sessions = [process["session"] for process in processes if process["session"] is not None]
    return [
        (session["core"], int(session["allocatable_bytes"]))
        for session in sessions
        if session.get("allocatable_bytes") and "core" in session
    ]


def costs(device: str) -> Costs | None:
    """Of the machine of a simulated GPU; None for a real one, or where nobody knows it any more."""
    kind, _, name = device.partition(":")
    if kind != "sim":
        return None
    from deepum.machines import named  # only here: it loads the native core

    with contextlib.suppress(DeepumError, ValueError):
        machine = named(name).native()
        return Costs(
            machine.h2d_gbps,
            machine.d2h_gbps,
            machine.fault_batch_ns / 1e9,
            machine.fault_ns_per_byte / 1e9,
        )
    return None


def _failed(report: Mapping[str, Any]) -> str | None:
    ended = report.get("ended")  # earlier versions did not tell it
    return ended if ended not in (None, "exited with code 0") else None


def _seconds(report: Mapping[str, Any], simulated: bool) -> float | None:
    key = "gpu_time_max_s" if simulated else "elapsed_s"
    seconds = report.get(key)
    return float(seconds) if seconds is not None else None


def _whole(report: Mapping[str, Any]) -> Interval | None:
    simulated = [one["simulated"] for one in report["processes"] if one["simulated"] is not None]
    if not simulated or report.get("compute_s") is None or not report["gpu_time_s"]:
        return None
    return Interval(
        float(report["gpu_time_s"]),
        float(report["compute_s"]),
        report["faults"],
        report["fault_batches"],
        sum(one.get("bytes_demand", 0) for one in simulated),
        report["bytes_h2d"],
        report["bytes_d2h"],
    )


def _step(report: Mapping[str, Any]) -> Step | None:
    figures = report.get("steady_step")  # earlier versions did not tell it
    if not figures:
        return None
    interval = Interval(
        float(figures["s"]),
        float(figures["compute_s"]),
        figures["faults"],
        figures.get("fault_batches", 0),
        figures.get("bytes_demand", 0),
        figures["bytes_h2d"],
        figures["bytes_d2h"],
    )
    doubt = _doubt(interval.seconds, figures.get("iterations"))
    return Step(interval, figures["kernels"], figures["steps"], figures["mean_of"], doubt)


def _doubt(seconds: float, iterations: float | None) -> str | None:
    """Why waits may not be a step apart: the launches repeat more often, or less often."""
    if iterations is None or abs(iterations - 1) <= _ALIKE:
        return None
    times = round(iterations)
    if times >= 2 and abs(iterations - times) <= _ALIKE * times:
        return (
            f"the program waits once in {times} iterations of its launches, as where every "
            f"{_th(times)} step is logged: one may be {seconds / times * 1e3:.1f} ms"
        )
    if iterations < 1:
        return "the launches repeat in longer parts than the program's waits: a part of a step"
    return "the launches repeat otherwise than the program's waits"


def _th(number: int) -> str:
    return {2: "second", 3: "third"}.get(number, f"{number}th")
