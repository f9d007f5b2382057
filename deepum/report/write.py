"""From inputs to the report: which charts belong to what, in which order, and what a reader has to
know of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deepum.errors import DeepumError, UsageError
from deepum.report import answers, charts, plan_charts, run_charts, speed_ups
from deepum.report.answers import Answer
from deepum.report.inputs import Inputs
from deepum.report.page import Page, figures
from deepum.report.timeline import Timeline
from deepum.simulate.steps import repeated
from deepum.sizes import size
from deepum.statistics.comparison import conclusion, table
from deepum.statistics.summary import summary

_SPEED_UP = (
    "A step is the mean of those after the warm-up, without the last. The bound is a time that no "
    "policy on this card can be below (docs/simulate.md); unlimited memory is another card's."
)
_RUN = (
    "Memory: resident on the GPU; allocated by the program; dead: of that, handed out to nobody by "
    "PyTorch's allocator. The dashed line is the card. The most in each part of the time is shown; "
    "the program's memory when its launches run, not when the host asks for it."
)
_STEP = (
    "Drag and scroll to see more of a part. What is shorter than a pixel is drawn together; "
    "`deepum trace export` writes every kernel and move for Perfetto."
)

_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)


def main_chart(inputs: Inputs, simulated: Sequence[Mapping[str, Any]]) -> charts.Spec:
    """The one for a picture: speed-ups, or the times of runs if nothing was simulated, or the
    first plan. Raises UsageError if there is none of them.
    """
    simulations = [*(simulation for _, simulation in inputs.simulations), *simulated]
    if simulations:
        return speed_ups.chart(simulations)
    if (chart := _times(inputs)) is not None:
        return chart
    for _, plan in inputs.plans[:1]:
        return plan_charts.timeline(plan)
    raise UsageError(
        "--image: nothing here has a main chart; give a simulation, a workload, a plan or "
        "runs on the simulated GPU"
    )


def report(
    inputs: Inputs,
    simulated: Sequence[tuple[Mapping[str, Any], Sequence[Timeline]]],
    title: str = "deepum report",
) -> Page:
    """The page. `simulated`: of each workload, as `Comparison.as_json` tells it, with timelines."""
    page = Page(title)
    simulations: list[Mapping[str, Any]] = [
        *(simulation for _, simulation in inputs.simulations),
        *(one for one, _ in simulated),
    ]
    page.answers(_answers(inputs, simulations))
    for simulation in simulations:
        page.outcome(_went(simulation))
    if inputs.statistics:
        page.subtitle(of_what(inputs.statistics))
    elif simulations:
        page.subtitle("replayed by the simulation, under each policy: times are virtual")
    for name, plan in inputs.plans:
        page.outcome(plan_charts.outcome(name, plan))
    if simulations:
        page.heading("Speed-up over on-demand paging")
        page.text(_SPEED_UP)
        page.chart(speed_ups.chart(simulations))
    for name, simulation in inputs.simulations:
        page.heading(
            f"{simulation['workload']} on {simulation['machine']}, "
            f"{size(simulation['memory_bytes'])} ({name})"
        )
        _simulation(page, simulation)
    for one, timelines in simulated:
        page.heading(f"{one['workload']} on {one['machine']}, {size(one['memory_bytes'])}")
        _simulation(page, one)
        for number, timeline in enumerate(timelines):
            _timeline(page, timeline, explained=number > 0)
    _runs(page, inputs)
    for name, statistics in inputs.statistics:
        page.heading(f"Run {name}")
        _statistics(page, name, statistics)
    for name, plan in inputs.plans:
        plan_charts.section(page, name, plan)
    return page


def _answers(inputs: Inputs, simulations: Sequence[Mapping[str, Any]]) -> list[Answer]:
    """Of the runs, where there are some: a replay is of the simulation's making."""
    try:
        used = [(name, one) for name, one in inputs.statistics if one["processes"]]
        return answers.of_runs(used) if used else answers.of_simulations(simulations)
    except _MALFORMED as error:
        raise _meaningless("the figures", error) from None


def of_what(statistics: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Which runs, on which devices, and whose times they are."""
    devices = list(dict.fromkeys(str(one["device"]) for _, one in statistics))
    simulated = [device.startswith("sim:") for device in devices]
    times = ", a simulated GPU: times are virtual" if all(simulated) else ""
    return f"{', '.join(name for name, _ in statistics)} on {', '.join(devices)}{times}"


def _meaningless(what: str, error: Exception) -> DeepumError:
    return DeepumError(f"{what}: make no sense: {error}; write them anew with `deepum run --stats`")


def _runs(page: Page, inputs: Inputs) -> None:
    """Runs beside each other: a table of those that can be compared, GPU time of all."""
    try:
        comparison, chart = (
            answers.comparison(inputs.statistics),
            run_charts.times(inputs.statistics),
        )
    except _MALFORMED as error:
        raise _meaningless("statistics", error) from None
    if comparison is not None:
        page.heading("Runs beside each other")
        page.table(*table(comparison))
        page.text("; ".join([*conclusion(comparison), *comparison.remarks]) + ".")
    if chart is not None:
        page.heading("GPU time of the whole runs, their first steps included")
        page.chart(chart)


def _went(simulation: Mapping[str, Any]) -> str:
    """How a simulation came out, in a line: deepum, or the fastest of others, beside on-demand
    paging and the bound.
    """
    what = (
        f"{simulation['workload']} on {simulation['machine']}, {size(simulation['memory_bytes'])}"
    )
    ran = {
        name: policy
        for name, policy in simulation["policies"].items()
        if name != "unlimited" and "does_not_fit" not in policy
    }
    if not ran:
        return f"{what}: fits under no policy"
    name = "deepum" if "deepum" in ran else min(ran, key=lambda one: float(ran[one]["step_ms"]))
    best = ran[name]
    line = f"{what}: {best['step_ms']:.1f} ms a step under {name}"
    if name != "on-demand" and best["speed_up_over_on_demand"] is not None:
        line += f", {best['speed_up_over_on_demand']:.2f} times as fast as on-demand paging"
    return (
        line
        if best.get("of_bound") is None
        else f"{line}, {best['of_bound']:.2f} times the lower bound"
    )


def _summary(name: str, statistics: Mapping[str, Any]) -> list[str]:
    try:
        return summary(statistics)
    except _MALFORMED as error:
        raise _meaningless(f"{name}: the statistics", error) from None


def _times(inputs: Inputs) -> charts.Spec | None:
    try:
        return run_charts.times(inputs.statistics)
    except _MALFORMED as error:
        raise _meaningless("statistics", error) from None


def _simulation(page: Page, simulation: Mapping[str, Any]) -> None:
    page.table(*figures(simulation))
    for name, policy in simulation["policies"].items():
        if "does_not_fit" in policy:
            page.text(f"{name} does not fit: {policy['does_not_fit']}.")
    if note := repeated(int(simulation.get("repetitions") or 1)):
        page.text(f"{note[0].upper()}{note[1:]}.")
    bound, moving = simulation.get("bound_ms"), simulation.get("moving_bound_ms")
    if bound is not None:
        page.text(
            f"Lower bound: {bound:.1f} ms a step"
            + (f"; without copies in advance {moving:.1f} ms." if moving is not None else ".")
        )
    if any(policy.get("steps_faults") for policy in simulation["policies"].values()):
        page.heading("Faults per iteration", 3)
        page.chart(charts.by_iteration(simulation, "steps_faults", "faults", "symlog"))
    page.heading("Time per iteration", 3)
    page.chart(charts.by_iteration(simulation, "steps_ms", "ms", "log"))


def _timeline(page: Page, timeline: Timeline, explained: bool) -> None:
    page.heading(f"{timeline.policy}: memory and link over the run", 3)
    if not explained:
        page.text(_RUN)
    page.chart(charts.whole_run(timeline))
    page.heading(f"{timeline.policy}: a step", 3)
    if not explained:
        page.text(_STEP)
    page.chart(charts.one_step(timeline))


def _statistics(page: Page, name: str, statistics: Mapping[str, Any]) -> None:
    try:
        page.verbatim(_summary(name, statistics))
        if plans := run_charts.plans(statistics):
            page.heading("Plans that were tried", 3)
            page.table(*plans)
        for process, chart in run_charts.over_time(statistics):
            page.heading(f"process {process}: link and faults between the program's waits", 3)
            page.chart(chart)
    except _MALFORMED as error:
        raise _meaningless(f"{name}: the statistics", error) from None
