"""The main chart: speed-ups over on-demand paging beside the most that the lower bounds allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import geometric_mean
from typing import Any

from deepum.report import charts
from deepum.sizes import size

_PANELS = 6  # more are one chart with a line each
_HEADER: charts.Spec = {"labelAnchor": "start", "labelFontWeight": "bold", "labelFontSize": 12}
_MEAN = "geometric mean"
_BOUND = "bound"
# That of unified memory: content is kept until the program gives it up (docs/simulate.md).
_KEPT = "kept"
_LIMITS = {_BOUND: "bound_ms", _KEPT: "kept_bound_ms"}
_FAR = 4  # times the next
_MARGIN = 1.08
_SUBTITLE = "black strokes: the most that the lower bound allows"
_KEPT_SUBTITLE = "; red: that of unified memory"
_KEPT_COLOUR = "#c1121f"
_TICKS = [mantissa * 10**power for power in range(-1, 5) for mantissa in (1, 1.5, 2, 3, 5, 7)]


def chart(simulations: Sequence[Mapping[str, Any]]) -> charts.Spec:
    """Of simulations as `deepum simulate --json` writes them."""
    return bars(simulations) if len(simulations) <= _PANELS else lines(simulations)


def _most(simulation: Mapping[str, Any]) -> dict[str, float]:
    """The speed-ups that the bounds allow, those of them that are known."""
    on_demand = simulation["policies"]["on-demand"]["step_ms"]
    return {
        name: on_demand / simulation[key] for name, key in _LIMITS.items() if simulation.get(key)
    }


def _differ(simulations: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the bound of unified memory is another anywhere, so that it is worth a stroke."""
    return any(
        one.get("bound_ms") and one.get("kept_bound_ms") not in (None, one["bound_ms"])
        for one in simulations
    )


def bars(simulations: Sequence[Mapping[str, Any]]) -> charts.Spec:
    """A panel for each, of bars: each policy's speed-up over on-demand, and the most that the bound
    allows.
    """
    rows: list[charts.Spec] = []
    policies: list[str] = []
    cards: list[str] = []
    labels: list[str] = []
    for simulation in simulations:
        results = simulation["policies"]
        most = _most(simulation)
        if not _differ([simulation]):
            most.pop(_KEPT, None)
        card = (
            f"{simulation['workload']} on {simulation['machine']}, "
            f"{size(simulation['memory_bytes'])}"
        )
        cards.append(card)
        card += f" ({cards.count(card)})" if cards.count(card) > 1 else ""
        labels.append(card)
        for name, figures in results.items():
            policies += [name] if name not in policies else []
            if "does_not_fit" in figures:
                rows.append(
                    {
                        "workload": card,
                        "policy": name,
                        "value": 0,
                        "text": "",
                        "missing": "does not fit",
                    }
                )
                continue
            value = figures["speed_up_over_on_demand"]
            rows.append(
                {
                    "workload": card,
                    "policy": name,
                    "value": charts.short(value),
                    "text": f"{value:.2f}",
                }
            )
            rows[-1] |= {limit: charts.short(value) for limit, value in most.items()}
    order = sorted(policies, key=lambda name: (name != "on-demand", name == "unlimited"))
    y: charts.Spec = {"field": "policy", "type": "nominal", "sort": order, "title": None}
    x: charts.Spec = {
        "field": "value",
        "type": "quantitative",
        "title": "speed-up over on-demand paging",
    }
    layers: list[charts.Spec] = [
        {
            "mark": {"type": "bar", "height": {"band": 0.7}},
            "encoding": {"x": x, "y": y, "color": charts.colour(order)},
        },
        {
            # Behind the bar, which may be too short for it.
            "mark": {"type": "text", "align": "left", "dx": 5},
            "encoding": {"x": x, "y": y, "text": {"field": "text", "type": "nominal"}},
        },
    ]
    if any("missing" in row for row in rows):
        layers.append(
            {
                "transform": [{"filter": "isValid(datum.missing)"}],
                "mark": {"type": "text", "align": "left", "dx": 5},
                "encoding": {"x": x, "y": y, "text": {"field": "missing", "type": "nominal"}},
            }
        )
    bound_note = "; dashed: the most that the lower bound allows"
    for limit, colour, note in (
        (_BOUND, "black", bound_note),
        (_KEPT, _KEPT_COLOUR, _KEPT_SUBTITLE),
    ):
        if any(limit in row for row in rows):
            x["title"] += note
            rule = {"type": "rule", "strokeDash": [5, 3], "strokeWidth": 1.5, "color": colour}
            layers.append(
                {
                    "mark": rule,
                    "encoding": {"x": {"field": limit, "type": "quantitative", "aggregate": "max"}},
                }
            )
    return {
        "data": {"values": rows},
        "facet": {
            "field": "workload",
            "type": "nominal",
            "title": None,
            "sort": labels,
            "header": _HEADER,
        },
        "columns": 1,
        "spec": {"width": 560, "height": {"step": 22}, "layer": layers},
        "config": charts.CONFIG,
    }


def _names(simulations: Sequence[Mapping[str, Any]]) -> list[str]:
    """As short as tells them apart: the workload's name, with the numbers in which those of that
    name differ, with its place in the list; and its machine, if there are several.
    """
    heads, numbers = zip(
        *(
            (head, rest.split(","))
            for head, _, rest in (one["workload"].partition(":") for one in simulations)
        ),
        strict=True,
    )
    # A number that all of that name have tells nothing apart.
    alike = Counter(
        (head, part)
        for head, parts in zip(heads, numbers, strict=True)
        for part in dict.fromkeys(parts)
    )
    every = Counter(heads)
    several = len({one["machine"] for one in simulations}) > 1
    levels = []
    for place, (head, parts, one) in enumerate(
        zip(heads, numbers, simulations, strict=True), start=1
    ):
        label = " ".join([head, *(part for part in parts if alike[head, part] < every[head])])
        on = f" on {one['machine']}" if several else ""
        levels.append([f"{head}{on}", f"{label}{on}", f"{label}{on} ({place})"])
    taken = [Counter(one[level] for one in levels) for level in range(len(levels[0]))]
    return [
        next(name for level, name in enumerate(one) if taken[level][name] == 1) for one in levels
    ]


def _cards(simulations: Sequence[Mapping[str, Any]]) -> str:
    cards = dict.fromkeys(f"{one['machine']}, {size(one['memory_bytes'])}" for one in simulations)
    return next(iter(cards)) if len(cards) == 1 else f"{len(cards)} cards"


def _speed_ups(
    simulations: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Speed-ups by policy and workload, with the geometric mean where all have one; last what the
    bounds allow.
    """
    policies = dict.fromkeys(
        name
        for one in simulations
        for name in one["policies"]
        if name not in ("on-demand", "unlimited")
    )
    speed_ups: dict[str, dict[str, float]] = {policy: {} for policy in [*policies, *_LIMITS]}
    for name, one in zip(names, simulations, strict=True):
        for policy in policies:
            speed_up = one["policies"].get(policy, {}).get("speed_up_over_on_demand")
            if speed_up:  # some run out of memory
                speed_ups[policy][name] = float(speed_up)
        for limit, most in _most(one).items():
            speed_ups[limit][name] = most
    for values in speed_ups.values():
        if len(values) == len(names):
            values[_MEAN] = geometric_mean(values.values())
    return speed_ups


def _end(values: Sequence[float]) -> float:
    """Of the axis: the greatest, unless it is so far above the others that these would crowd for
    its sake.
    """
    rising = sorted(values)
    far = (
        at for at in range(len(rising) // 2, len(rising) - 1) if rising[at + 1] > _FAR * rising[at]
    )
    return _MARGIN * rising[next(far, -1)] if rising else 1.0


def lines(simulations: Sequence[Mapping[str, Any]]) -> charts.Spec:
    """A line for each: a point a policy, and strokes at what the bounds allow; the last line has
    the geometric means. What is beyond the axis stands at its end, in figures.
    """
    names = _names(simulations)
    speed_ups = _speed_ups(simulations, names)
    end = _end([value for values in speed_ups.values() for value in values.values()])
    points: list[charts.Spec] = []
    limits: list[charts.Spec] = []
    kept: list[charts.Spec] = []
    beyond: list[charts.Spec] = []
    for name in [*names, _MEAN]:
        known = {policy: values[name] for policy, values in speed_ups.items() if name in values}
        points += [
            {"workload": name, "policy": p, "value": charts.short(v)}
            for p, v in known.items()
            if p not in _LIMITS and v <= end
        ]
        if _BOUND in known:
            limits.append(
                {
                    "workload": name,
                    "most": charts.short(min(known[_BOUND], end)),
                    "seen": known[_BOUND] <= end,
                }
            )
        if _KEPT in known and known[_KEPT] <= end:
            kept.append({"workload": name, "most": charts.short(known[_KEPT])})
        if far := [
            f"{policy} {value:.0f}"
            for policy, value in known.items()
            if value > end and policy != _KEPT
        ]:
            beyond.append(
                {"workload": name, "at": charts.short(end), "text": f"{', '.join(far)} >"}
            )
    least = min([1.0, *(row["value"] for row in points)])
    x: charts.Spec = {
        "type": "quantitative",
        "scale": {
            "type": "log",
            "nice": False,
            "domain": [charts.short(least / _MARGIN) if least < 1 else 1, charts.short(end)],
        },
        "axis": {"values": _TICKS, "format": "~g"},
        "title": "speed-up over on-demand paging",
    }
    bold = {"condition": {"test": f"datum.value === '{_MEAN}'", "value": "bold"}, "value": "normal"}
    y: charts.Spec = {
        "field": "workload",
        "type": "nominal",
        "sort": [*names, _MEAN],
        "title": None,
    }
    y["axis"] = {"labelLimit": 320, "labelFontWeight": bold}
    key = charts.colour([policy for policy in speed_ups if policy not in _LIMITS])
    key["legend"] = {"title": None, "orient": "top", "symbolSize": 90}
    dot = {"type": "point", "filled": True, "size": 70, "opacity": 0.95, "tooltip": True}
    text = {
        "type": "text",
        "align": "right",
        "dx": -2,
        "dy": -7,
        "fontSize": 10,
        "color": "#444444",
    }
    layers: list[tuple[list[charts.Spec], charts.Spec, charts.Spec]] = [
        (
            limits,
            {"type": "bar", "height": 3, "color": "#e3e3e3"},
            {"x": {"field": "most", **x}, "x2": {"datum": 1}},
        ),
        (points, dot, {"x": {"field": "value", **x}, "color": key}),
        (
            [row for row in limits if row["seen"]],
            {"type": "tick", "color": "black", "thickness": 2, "size": 14},
            {"x": {"field": "most", **x}},
        ),
        (beyond, text, {"x": {"field": "at", **x}, "text": {"field": "text", "type": "nominal"}}),
    ]
    subtitle = _SUBTITLE if limits else ""
    if _differ(simulations):
        subtitle += _KEPT_SUBTITLE
        # Below the black ones: where both are the same, there is one stroke.
        layers.insert(
            2,
            (
                kept,
                {"type": "tick", "color": _KEPT_COLOUR, "thickness": 2, "size": 14},
                {"x": {"field": "most", **x}},
            ),
        )
    return {
        "title": {
            "text": _cards(simulations),
            "anchor": "start",
            "fontSize": 12,
            "subtitle": subtitle,
        },
        "width": 560,
        "height": {"step": 19},
        "encoding": {"y": y},
        "layer": [
            {"data": {"values": rows}, "mark": mark, "encoding": encoding}
            for rows, mark, encoding in layers
        ],
        "config": charts.CONFIG,
    }
