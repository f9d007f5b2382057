"""Charts of real and simulated runs, from their statistics (docs/statistics.md): coarser than a
replay's, as a run counts at its waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from deepum.machines import machines
from deepum.report import charts
from deepum.report.charts import Spec
from deepum.report.timeline import Floats

_BINS = 480


def times(statistics: Sequence[tuple[str, Mapping[str, Any]]]) -> Spec | None:
    """GPU time of each run, with the speed-up over the first that is on demand; None if fewer than
    two have one.
    """
    known = [
        (name, figures["policy"], float(figures["gpu_time_s"]))
        for name, figures in statistics
        if figures.get("gpu_time_s")
    ]
    if len(known) < 2:
        return None
    paged = next((seconds for _, policy, seconds in known if policy == "on-demand"), None)
    rows = [
        {
            "run": name,
            "s": seconds,
            "text": f"{seconds:.3f} s" + (f", {paged / seconds:.2f} x" if paged else ""),
        }
        for name, _, seconds in known
    ]
    y: Spec = {"field": "run", "type": "nominal", "sort": None, "title": None}
    x: Spec = {
        "field": "s",
        "type": "quantitative",
        "title": "GPU time of the whole run, s" + ("; x over on demand" if paged else ""),
    }
    return {
        "width": 560,
        "height": {"step": 24},
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "bar", "height": {"band": 0.7}, "color": "#2f6fb7"},
                "encoding": {"x": x, "y": y},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 4},
                "encoding": {"x": x, "y": y, "text": {"field": "text", "type": "nominal"}},
            },
        ],
        "config": charts.CONFIG,
    }


def plans(
    statistics: Mapping[str, Any],
) -> tuple[tuple[str, ...], list[tuple[str, ...]]] | None:
    """Head and rows of the plans of a run with --policy planned; None where there were none."""

    def ms(us: float | None) -> str:
        return "-" if us is None else f"{us / 1e3:.1f}"

    rows: list[tuple[str, ...]] = [
        (
            str(number),
            str(one["launches"]),
            str(one["moves"]),
            ms(one["before_us"]),
            ms(one["with_us"]),
            "kept" if one["kept"] else one["reason"] or "-",
        )
        for number, one in enumerate(statistics.get("plans") or [], start=1)
    ]
    head = ("plan", "launches", "moves", "ms before", "ms with it", "what became of it")
    return (head, rows) if rows else None


def over_time(statistics: Mapping[str, Any]) -> list[tuple[int, Spec]]:
    """By process of the simulated GPU: link use and faults, evenly spread from wait to wait of the
    program.
    """
    found = []
    for process in statistics["processes"]:
        simulated = process["simulated"]
        points = simulated["timeline"] if simulated is not None else []
        if len(points) >= 2:
            found.append((int(process["pid"]), _over_time(simulated["machine"], points)))
    return found


def _over_time(machine: str, points: Sequence[Mapping[str, float]]) -> Spec:
    seconds = np.array([0.0, *(point["t_s"] for point in points)])
    counted = {
        key: np.array([0.0, *(point[key] for point in points)])
        for key in ("faults", "bytes_h2d", "bytes_d2h")
    }
    at = np.linspace(0.0, max(seconds[-1], 1e-9), min(_BINS, 4 * len(points)) + 1)
    rates: dict[str, Floats] = {
        key: np.diff(np.interp(at, seconds, values)) / np.diff(at)
        for key, values in counted.items()
    }
    gbps = next(((one.h2d_gbps, one.d2h_gbps) for one in machines() if one.name == machine), None)
    link = charts.link_use(at, rates["bytes_h2d"] / 1e9, rates["bytes_d2h"] / 1e9, gbps)
    faults = charts.area(at, rates["faults"], "faults", "faults a second", "#ef8a62")
    return charts.stacked([link, faults])
