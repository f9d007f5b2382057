"""Runs of one program beside each other: on demand, under deepum, with unlimited memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deepum.sizes import size
from deepum.statistics.outcome import Outcome, outcome
from deepum.statistics.verdict import ALIKE, Interval

_ALIKE = 0.02  # by which the kernels of a step may differ from run to run


@dataclass(frozen=True)
class Row:
    """A run: milliseconds a step, or of the whole; what was moved meanwhile, where somebody tells;
    times as fast as on demand, and of the time with unlimited memory, where there are such runs.
    """

    name: str
    ms: float | None
    faults: float | None
    bytes_in: float | None
    bytes_out: float | None
    over_on_demand: float | None
    of_unlimited: float | None
    limit: str


@dataclass(frozen=True)
class Comparison:
    """`subject`: the row that is asked about; `per`: what a row is of, `step` or `run`; `clock`:
    `virtual` or `real`; `remarks`: what a reader has to know of the figures.
    """

    subject: int
    per: str
    clock: str
    rows: tuple[Row, ...]
    outcomes: tuple[Outcome, ...]
    remarks: tuple[str, ...]


def compared(
    runs: Sequence[tuple[str, Mapping[str, Any]]],
    on_demand: str | None = "on-demand",
    unlimited: str | None = "unlimited",
) -> Comparison:
    """`runs`: names and statistics, one at least; `on_demand`, `unlimited`: names of what the
    others are compared with, the first of which is the subject. Figures are of a step where each
    run has one of as many kernels, else of the whole run.
    """
    outcomes = [outcome(report) for _, report in runs]
    steps = [result.step for result in outcomes]
    per_step = bool(steps) and all(
        step is not None
        and steps[0] is not None
        and abs(step.kernels - steps[0].kernels) <= _ALIKE * steps[0].kernels
        for step in steps
    )
    ms: dict[str | None, float | None] = {
        name: _ms(result, per_step) for (name, _), result in zip(runs, outcomes, strict=True)
    }
    names = [name for name, _ in runs]
    rows = tuple(
        _row(name, result, per_step, (ms[name], ms.get(on_demand), ms.get(unlimited)))
        for (name, _), result in zip(runs, outcomes, strict=True)
    )
    simulated = all(result.run.simulated for result in outcomes)
    return Comparison(
        next((at for at, name in enumerate(names) if name not in (on_demand, unlimited)), 0),
        "step" if per_step else "run",
        "virtual" if simulated else "real",
        rows,
        tuple(outcomes),
        tuple(_remarks(runs, outcomes, per_step)),
    )


def _interval(result: Outcome, per_step: bool) -> Interval | None:
    return result.step.interval if per_step and result.step is not None else result.whole


def _ms(result: Outcome, per_step: bool) -> float | None:
    if per_step and result.step is not None:
        return result.step.interval.seconds * 1e3
    return result.seconds * 1e3 if result.seconds is not None else None


def _row(
    name: str,
    result: Outcome,
    per_step: bool,
    times: tuple[float | None, float | None, float | None],
) -> Row:
    """`times`: its own, on demand, with unlimited memory."""
    took = _interval(result, per_step)
    mine, paged, unlimited = times
    return Row(
        name,
        mine,
        took.faults if took is not None else None,
        took.bytes_in if took is not None else None,
        took.bytes_out if took is not None else None,
        paged / mine if paged is not None and mine else None,
        mine / unlimited if mine is not None and unlimited else None,
        "nothing: all fits" if result.run.fits else result.limit.value,
    )


def _remarks(
    runs: Sequence[tuple[str, Mapping[str, Any]]], outcomes: Sequence[Outcome], per_step: bool
) -> list[str]:
    found = []
    if per_step:
        means = {
            (result.step.mean_of, result.step.steps)
            for result in outcomes
            if result.step is not None
        }
        found += [
            f"a step is the mean of {mean_of} of {steps} that were found"
            for mean_of, steps in sorted(means)
        ]
    else:
        lacking = [
            name for (name, _), result in zip(runs, outcomes, strict=True) if result.step is None
        ]
        why = f"{', '.join(lacking)} has no steps" if lacking else "steps differ from run to run"
        found.append(f"figures are of whole runs, warm-up included: {why} that can be compared")
    doubts = {
        result.step.doubt for result in outcomes if result.step is not None and result.step.doubt
    }
    found += [f"doubtful: {doubt}" for doubt in sorted(doubts)]
    if any(len(report["processes"]) > 1 for _, report in runs):
        found.append("several processes: times are of the longest one, counts of whole runs of all")
    return found


def table(comparison: Comparison) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows, as text."""
    head = (
        "policy",
        f"ms a {comparison.per}" if comparison.per == "step" else f"s, {comparison.clock}",
        "faults",
        "to the GPU",
        "back",
        "over on-demand",
        "of unlimited",
        "limit",
    )
    rows: list[tuple[str, ...]] = [
        (
            row.name,
            _time(row.ms, comparison.per),
            "-" if row.faults is None else f"{row.faults:.0f}",
            "-" if row.bytes_in is None else size(row.bytes_in),
            "-" if row.bytes_out is None else size(row.bytes_out),
            _times(row.over_on_demand),
            _times(row.of_unlimited),
            row.limit,
        )
        for row in comparison.rows
    ]
    return head, rows


def _time(ms: float | None, per: str) -> str:
    if ms is None:
        return "-"
    return f"{ms:.1f}" if per == "step" else f"{ms / 1e3:.3f}"


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f} x"


def conclusion(comparison: Comparison) -> list[str]:
    """What it comes to, in sentences: how much faster, how far from unlimited memory."""
    row, lines = comparison.rows[comparison.subject], []
    if row.over_on_demand is not None and len(comparison.rows) > 1:
        lines.append(faster(row.name, row.over_on_demand))
    if row.of_unlimited is not None and len(comparison.rows) > 1:
        lines.append(f"with unlimited memory it would take {1 / row.of_unlimited:.0%} of its time")
    return lines


def faster(name: str, ratio: float) -> str:
    """How much faster than on demand."""
    if ALIKE[0] <= ratio <= ALIKE[1]:
        return f"{name} is as fast as on-demand paging"
    if ratio < 1:
        return f"{name} is slower than on-demand paging: {1 / ratio:.2f} times its time"
    return f"{name} is {ratio:.2f} times as fast as on-demand paging"
