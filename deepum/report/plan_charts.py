"""What a plan comes to, as its page has it: figures, charts over one iteration, what moves most."""

from __future__ import annotations

import numpy as np

from deepum.report import charts, series
from deepum.report.charts import Spec
from deepum.report.page import Page
from deepum.report.plans import Content, PlanReplay
from deepum.report.timeline import Floats
from deepum.sizes import size

_BINS = 480
_MOST_CONTENTS = 15
_COLOURS = {"held": "#2f6fb7", "live": "#d1495b", "used": "#444444"}
_TIMELINE = (
    "One iteration, replayed: launches and transfers alone (docs/planning.md). The first chart is "
    "the part of the time that launches wait. Memory: held on the card, by what is there, on its "
    "way or leaving; live, what would be there if nothing left; used by the launch at hand. The "
    "dashed lines are what the link can carry and the memory that the plan may have. The most in "
    "each part of the time is shown. Drag and scroll to see more of a part."
)
_CONTENTS = (
    "Memory that is used by the same launches is one row. Names are those by which the next run "
    "finds it; a block has 2 MiB. Away: evicted behind the first launch, there again at the second."
)


def outcome(name: str, plan: PlanReplay) -> str:
    """How it came out, in a line."""
    made, replayed = plan.outline.made, plan.replayed
    line = f"{name}: {replayed.ns / 1e6:.1f} ms an iteration, planned by {made.planner}"
    if made.bound_ns:
        line += f", {replayed.ns / made.bound_ns:.3f} times the lower bound"
    return f"{line}; {size(replayed.in_bytes)} in, {size(replayed.out_bytes)} out"


def figures(plan: PlanReplay) -> list[tuple[str, str]]:
    """Of the plan: what, and how much."""
    made, replayed, link = plan.outline.made, plan.replayed, plan.outline.link
    bounds = (
        ("of the lower bound of unified memory", made.bound_ns),
        ("of the bound by linear programming", made.linear_bound_ns),
    )
    waited = int((replayed.stall_ns > 0).sum())
    return [
        ("planner", f"{made.planner}, {made.seconds:.2f} s"),
        ("an iteration", f"{replayed.ns / 1e6:.1f} ms"),
        ("of it computing", f"{plan.outline.iteration.compute_ns / 1e6:.1f} ms"),
        (
            "of it waiting",
            f"{replayed.stall_ns.sum() / 1e6:.1f} ms, at {waited} of {len(replayed.stall_ns)} "
            f"launches",
        ),
        *(
            (what, f"{replayed.ns / ns:.3f}, {ns / 1e6:.1f} ms" if ns else "not known")
            for what, ns in bounds
        ),
        ("to the GPU", f"{size(replayed.in_bytes)}, {link.in_gbps:g} GB/s at most"),
        ("to the host", f"{size(replayed.out_bytes)}, {link.out_gbps:g} GB/s at most"),
        (
            "held at most",
            f"{size(int(plan.levels['bytes'].max()))} of {size(link.memory_bytes)}",
        ),
        ("live at most", size(int(plan.live.max()))),
        ("moves", str(plan.moves)),
    ]


def timeline(plan: PlanReplay) -> Spec:
    """Waiting launches, link and memory over the iteration."""
    at = series.edges(0.0, plan.replayed.ns, _BINS)
    link = plan.outline.link
    into, out = (series.rate(plan.crossing(out), at) for out in (False, True))
    levels = {
        "held": series.highest(plan.levels["ns"], plan.levels["bytes"], at),
        "live": series.highest(plan.turns, plan.live, at),
        "used": series.highest(plan.turns, plan.used, at),
    }
    return charts.stacked(
        [
            _waiting(plan, at),
            charts.link_use(at / 1e9, into, out, (link.in_gbps, link.out_gbps)),
            charts.memory_use(at, levels, _COLOURS, link.memory_bytes),
        ]
    )


def _waiting(plan: PlanReplay, at: Floats) -> Spec:
    stalls = np.zeros(
        len(plan.turns), np.dtype([("start_ns", "f8"), ("end_ns", "f8"), ("bytes", "f8")])
    )
    stalls["start_ns"], stalls["bytes"] = plan.turns, plan.replayed.stall_ns
    stalls["end_ns"] = plan.turns + plan.replayed.stall_ns
    part = np.minimum(100 * series.rate(stalls, at), 100.0)
    return charts.area(at / 1e9, part, "waiting", "waiting, %", "#d1495b", most=100)


def _names(content: Content) -> str:
    first, *others = content.names
    last = first.first + first.count - 1
    text = f"{first.name:016x}, block"
    text += f" {first.first}" if first.count == 1 else f"s {first.first} to {last}"
    return f"{text}, and {len(others)} more" if others else text


def _away(content: Content) -> str:
    (start, end), *others = content.away
    text = f"{start} to {end}" + (" of the next" if end <= start else "")
    return f"{text}, and {len(others)} more" if others else text


def contents(plan: PlanReplay) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows of the table of what moves most."""
    found = plan.contents()
    total = sum(one.in_bytes + one.out_bytes for one in found)
    rows: list[tuple[str, ...]] = [
        (
            _names(one),
            size(one.bytes),
            str(one.uses),
            _away(one) if one.away else "-",
            size(one.in_bytes),
            size(one.out_bytes),
            f"{100 * (one.in_bytes + one.out_bytes) / total:.1f} %",
        )
        for one in found[:_MOST_CONTENTS]
    ]
    return ("memory", "size", "launches", "away from launch", "in", "out", "of all bytes"), rows


def section(page: Page, name: str, plan: PlanReplay) -> None:
    """All of that, on the page."""
    made = plan.outline.made
    of = f": {made.workload} on {made.machine}" if made.workload and made.machine else ""
    page.heading(f"Plan {name}{of}")
    page.table(("", ""), figures(plan))
    page.heading("An iteration", 3)
    page.text(_TIMELINE)
    page.chart(timeline(plan))
    head, rows = contents(plan)
    if rows:
        page.heading("What moves most", 3)
        page.text(_CONTENTS)
        page.table(head, rows)
