"""Charts as Vega-Lite specifications: plain data, drawn by the page in a browser or by vl-convert
as a picture.

Vega-Lite, of the libraries that draw in a page without anything from elsewhere: its code is 0.9 MB
a page (Plotly's is 4.8), the same specification becomes a PNG or SVG without a browser, and the one
package that does both, vl-convert-python, depends on nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from deepum.report import series
from deepum.report.series import Segment
from deepum.report.timeline import INTO_DEVICE, OUT_OF_DEVICE, Floats, Timeline
from deepum.sizes import size

Spec = dict[str, Any]

WIDTH = 900
DIGITS = 9
_BINS = 480  # points a series
_PARTS = 900  # bars a lane, at most twice
_COLOURS = {
    "on-demand": "#9a9a9a",
    "deepum-paper": "#f2a65a",
    "lookahead-8": "#76b7b2",
    "lms": "#8a6d3b",
    "lms-mod": "#c9a66b",
    "deepum": "#2f6fb7",
    "deepum-no-invalidation": "#6b9bd1",
    "deepum-last-use": "#7f6bb3",
    "unlimited": "#cfcfcf",
}
_KINDS = {
    "kernel": ("kernel", "#2f6fb7"),
    "stalled": ("kernel, waiting for memory for a tenth or more of its time", "#d1495b"),
    "fill": ("memset or copy in the GPU", "#8fb3dc"),
    "hold": ("launch held until its prefetches are done", "#e9b44c"),
    "prefetch": ("prefetch", "#3a9d5d"),
    "copy_in": ("the program's copy in", "#8a6d3b"),
    "remote_in": ("read over the link", "#b08ccf"),
    "fault": ("fault batch", "#ef8a62"),
    "evict": ("eviction ahead of need", "#1f7a8c"),
    "driver_evict": ("eviction by the driver", "#a23b4e"),
    "copy_out": ("the program's copy out", "#5d4a26"),
    "remote_out": ("written over the link", "#7d5ba6"),
}
CONFIG: Spec = {
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {"grid": True, "gridColor": "#eeeeee"},
    "background": "white",
    "legend": {"orient": "top", "labelLimit": 400},
}
_STALLED = 0.1
_SECOND = 1e9  # ns


def short(value: float, digits: int = 5) -> float:
    """Five digits are more than a chart shows of a value; of a time, which may be far from 0,
    `DIGITS`.
    """
    return float(f"{value:.{digits}g}")


def colour(policies: Sequence[str]) -> Spec:
    known = [name for name in policies if name in _COLOURS]
    if len(known) < len(policies):
        return {"field": "policy", "type": "nominal", "legend": None}
    return {
        "field": "policy",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": known, "range": [_COLOURS[n] for n in known]},
    }


def by_iteration(simulation: Mapping[str, Any], key: str, title: str, scale: str) -> Spec:
    """A figure of each step under each policy; `key`: of the simulation's policies; `scale`:
    Vega-Lite's type of it.
    """
    policies = {
        name: figures[key] for name, figures in simulation["policies"].items() if figures.get(key)
    }
    rows = [
        {"policy": name, "step": step, "value": short(value)}
        for name, values in policies.items()
        for step, value in _thinned(list(enumerate(values, start=1)))
    ]
    shade = colour(list(policies)) | {"legend": {"title": None}}
    return {
        "width": WIDTH - 200,
        "height": 200,
        "data": {"values": rows},
        "mark": {"type": "line", "point": True, "tooltip": True},
        "encoding": {
            "x": {
                "field": "step",
                "type": "quantitative",
                "title": "iteration",
                "axis": {"tickMinStep": 1},
            },
            "y": {
                "field": "value",
                "type": "quantitative",
                "title": title,
                "scale": {"type": scale},
            },
            "color": shade,
        },
        "config": CONFIG,
    }


def _thinned(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    every = -(-len(points) // _BINS) if points else 1
    return points[::every]


def area(
    at: Floats, values: Floats, name: str, title: str, colour: str, *, most: float | None = None
) -> Spec:
    """Values between each two edges of time (seconds), as an area. most: what the axis ends at."""
    rows = [{"t": short(t, DIGITS), name: short(value)} for t, value in changes(at, values)]
    scale = {} if most is None else {"scale": {"domain": [0, most]}}
    return {
        "width": WIDTH,
        "height": 120 if most is None else 70,
        "data": {"values": rows},
        "mark": {"type": "area", "interpolate": "step-after", "tooltip": True, "color": colour},
        "encoding": {
            "x": time_axis(),
            "y": {"field": name, "type": "quantitative", "title": title, **scale},
        },
    }


def time_axis() -> Spec:
    """The x of what is over time."""
    return {
        "field": "t",
        "type": "quantitative",
        "title": None,
        "axis": {"format": "~g"},
        "scale": {"nice": False, "zero": False},
    }


def _memory(timeline: Timeline, at: Floats) -> Spec:
    colours = {"resident": "#2f6fb7", "allocated": "#444444", "dead": "#d1495b"}
    return memory_use(at, series.memory(timeline, at), colours, timeline.memory_bytes)


def memory_use(
    at: Floats, in_bytes: Mapping[str, Floats], colours: Mapping[str, str], memory_bytes: int
) -> Spec:
    """Bytes between each two edges of time (ns), by what they are; dashed: the memory there is."""
    amounts = {what: values / 2**30 for what, values in in_bytes.items()}
    rows = [
        {"t": short(t, DIGITS), "what": what, "GiB": short(value)}
        for what, values in amounts.items()
        for t, value in changes(at / _SECOND, values)
    ]
    top = short(
        1.1 * max([memory_bytes / 2**30, *(float(values.max()) for values in amounts.values())])
    )
    scale = {"domain": [*colours], "range": [*colours.values()]}
    return {
        "width": WIDTH,
        "height": 150,
        "layer": [
            {
                "data": {"values": rows},
                "mark": {
                    "type": "line",
                    "interpolate": "step-after",
                    "strokeWidth": 1.3,
                    "tooltip": True,
                },
                "encoding": {
                    "x": time_axis(),
                    "y": {
                        "field": "GiB",
                        "type": "quantitative",
                        "title": "GiB",
                        "scale": {"domainMax": top},
                    },
                    "color": {"field": "what", "type": "nominal", "title": None, "scale": scale},
                },
            },
            {
                "data": {"values": [{"GiB": memory_bytes / 2**30}]},
                "mark": {"type": "rule", "strokeDash": [5, 3], "color": "black"},
                "encoding": {"y": {"field": "GiB", "type": "quantitative"}},
            },
        ],
    }


def changes(at: Floats, values: Floats) -> list[tuple[float, float]]:
    """A step function, one value from each edge to the next, without the points at which it does
    not change.
    """
    values = np.append(values, values[-1])
    kept = np.ones(len(values), dtype=bool)
    kept[1:-1] = (values[1:-1] != values[:-2]) | (values[1:-1] != values[2:])
    return list(zip(at[kept].tolist(), values[kept].tolist(), strict=True))


def _link(timeline: Timeline, at: Floats) -> Spec:
    into, out = (series.rate(timeline.of(*kinds), at) for kinds in (INTO_DEVICE, OUT_OF_DEVICE))
    return link_use(at / _SECOND, into, out, timeline.gbps)


def link_use(at: Floats, into: Floats, out: Floats, limits: tuple[float, float] | None) -> Spec:
    """What crosses the link, GB/s between each two edges of time (s); dashed: what it can carry
    each way.
    """
    rows = [
        {"t": short(t, DIGITS), "direction": direction, "GB/s": short(value)}
        for direction, rates in (("to the GPU", into), ("to the host", -out))
        for t, value in changes(at, rates)
    ]
    rule: Spec = {
        "data": {
            "values": [{"GB/s": limits[0]}, {"GB/s": -limits[1]}] if limits is not None else []
        },
        "mark": {"type": "rule", "strokeDash": [5, 3], "color": "black"},
        "encoding": {"y": {"field": "GB/s", "type": "quantitative"}},
    }
    scale = {"domain": ["to the GPU", "to the host"], "range": ["#3a9d5d", "#1f7a8c"]}
    area: Spec = {
        "data": {"values": rows},
        "mark": {"type": "area", "interpolate": "step-after", "tooltip": True, "opacity": 0.8},
        "encoding": {
            "x": time_axis(),
            "y": {
                "field": "GB/s",
                "type": "quantitative",
                "title": "GB/s, out below",
                "stack": None,
            },
            "color": {"field": "direction", "type": "nominal", "title": None, "scale": scale},
        },
    }
    return {"width": WIDTH, "height": 150, "layer": [area, rule]}


def _row(timeline: Timeline, one: Segment) -> Spec:
    kind = one.kind
    if kind == "kernel" and one.stall_ns >= _STALLED * (one.end - one.start) > 0:
        kind = "stalled"
    text = f"{one.count} x {_KINDS[kind][0]}" if one.count > 1 else _KINDS[kind][0]
    if one.place >= 0:
        text += f", {timeline.kernel_name(one.place)}"
    text += f", {size(one.bytes)}" if one.bytes else ""
    text += f", {(one.end - one.start) / 1e6:.4g} ms"
    return {
        "t": short(one.start / _SECOND, DIGITS),
        "end": short(one.end / _SECOND, DIGITS),
        "lane": one.lane,
        "kind": _KINDS[kind][0],
        "told": text,
    }


def _lanes(timeline: Timeline, start: float, end: float) -> Spec:
    rows = [_row(timeline, one) for one in series.segments(timeline, start, end, _PARTS)]
    there = {row["kind"] for row in rows}
    shown = [(text, colour) for text, colour in _KINDS.values() if text in there]
    lanes = [lane for lane in series.LANES if any(row["lane"] == lane for row in rows)]
    return {
        "width": WIDTH,
        "height": {"step": 26},
        "data": {"values": rows},
        "mark": {"type": "bar", "height": {"band": 0.85}, "clip": True},
        "encoding": {
            "x": time_axis(),
            "x2": {"field": "end"},
            "y": {"field": "lane", "type": "nominal", "sort": lanes, "title": None},
            "color": {
                "field": "kind",
                "type": "nominal",
                "title": None,
                "scale": {
                    "domain": [text for text, _ in shown],
                    "range": [colour for _, colour in shown],
                },
            },
            "tooltip": {"field": "told", "type": "nominal"},
        },
    }


def stacked(charts: list[Spec]) -> Spec:
    """One under the other over the same time, which the wheel stretches and the mouse drags."""
    for number, chart in enumerate(charts):
        drawn = chart["layer"][0] if "layer" in chart else chart
        drawn["name"] = f"view_{number}"
        drawn["encoding"]["x"] |= (
            {"title": "time, s"} if chart is charts[-1] else {"axis": {"labels": False}}
        )
    views = [f"view_{number}" for number in range(len(charts))]
    return {
        "params": [
            {
                "name": "zoom",
                "select": {"type": "interval", "encodings": ["x"]},
                "bind": "scales",
                "views": views,
            }
        ],
        "vconcat": charts,
        "spacing": 8,
        "resolve": {"scale": {"x": "shared", "color": "independent"}},
        "config": CONFIG,
    }


def whole_run(timeline: Timeline) -> Spec:
    """Memory and link over all of the run."""
    at = series.edges(0.0, timeline.ns, _BINS)
    return stacked([_memory(timeline, at), _link(timeline, at)])


def one_step(timeline: Timeline) -> Spec:
    """Kernels, moves, link and memory over a steady step."""
    start, end = series.steady_step(timeline)
    at = series.edges(start, end, _BINS)
    return stacked([_lanes(timeline, start, end), _link(timeline, at), _memory(timeline, at)])
