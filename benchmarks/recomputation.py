"""What recomputation brings beside moving: a step that moves alone (`deepum`), one that computes
again alone (`remat-alone`), and one of both (`remat`), where the link is what limits.

    python benchmarks/recomputation.py                      # all points, gated, expected costs
    python benchmarks/recomputation.py --mode lock-step --costs kind
    python benchmarks/recomputation.py --points t5-large@v100-16gb --costs unkind
    python benchmarks/recomputation.py --page               # docs/recomputation.md of what is kept

A point is bound by the link where what `deepum` moves in a step takes the link longer, one
direction after the other, than launches take: of the named workloads on `v100-16gb` and `rtx4090`
these are all that are. A run takes 57 steps; in the first 53 prices are tried, the next three are
counted, of `deepum` as well. `remat-alone` and the bounds are of seven steps.
Results are kept in FILE (--json) as each point is done, by mode and costs.
"""

from __future__ import annotations

import sys
from statistics import geometric_mean
from typing import Any

from kept import Kept, add_costs, measure_points, results_in

from deepum.recomputation.joined import MOST_STEPS as STEPS
from deepum.simulate.comparison import compare
from deepum.simulate.driver import BAND
from deepum.simulate.mode import DEFAULT, MODES, mode_of
from deepum.simulate.policies import BY_NAME
from deepum.simulate.preset import preset_of
from deepum.simulate.workload import load

POINTS = (
    "resnet152@v100-16gb",
    "resnet200@v100-16gb",
    "mobilenet@v100-16gb",
    "gpt2-small@v100-16gb",
    "gpt2-l@v100-16gb",
    "gpt2-xl@v100-16gb",
    "t5-large@v100-16gb",
    "llama-7b-lora@v100-16gb",
    "llama-7b@v100-16gb",
    "dlrm-dense@v100-16gb",
    "experts@v100-16gb",
    "llama-decode@v100-16gb",
    "resnet200@rtx4090",
    "mobilenet@rtx4090",
    "gpt2-xl@rtx4090",
    "t5-large@rtx4090",
    "llama-7b@rtx4090",
    "dlrm-dense@rtx4090",
    "experts@rtx4090",
    "llama-decode@rtx4090",
)
SHORT = 6
COUNTED = 3  # steps behind the trials
FIGURES = ("unlimited_ms", "link_ms", "moving_bound_ms", "recomputed_bound_ms")


def measure(point: str, mode: str, costs: str) -> dict[str, Any]:
    """Raises DeepumError."""
    name, _, machine = point.partition("@")
    driver, how = BAND[costs], mode_of(mode, costs)
    only = [BY_NAME["remat-alone"]]
    first = compare(load(name, SHORT, False, machine), machine, only, driver=driver, mode=how)
    last = load(name, STEPS + COUNTED, False, machine)
    policies = [BY_NAME["remat"], BY_NAME["deepum"]]
    then = compare(last, machine, policies, warm_up=STEPS, driver=driver, mode=how)
    rows = {**first.rows, **then.rows}
    preset = preset_of(machine)
    moving = rows["deepum"]
    link = moving.count("bytes_h2d") / preset.h2d_gbps + moving.count("bytes_d2h") / preset.d2h_gbps
    return {
        "unlimited_ms": first.rows["unlimited"].ns / 1e6,
        "link_ms": link / 1e6,
        "moving_bound_ms": (first.kept_bound_ns or 0) / 1e6,
        "recomputed_bound_ms": (first.recomputed_bound_ns or 0) / 1e6,
        **{name: _ms(rows[name].ns) for name in ("deepum", "remat-alone", "remat")},
        "gib_in": {one: rows[one].count("bytes_h2d") / 2**30 for one in ("deepum", "remat")},
    }


def _ms(ns: float) -> float | None:
    return ns / 1e6 if ns < float("inf") else None


def table(kept: dict[str, Any]) -> str:
    """Of all points with expected costs, in Markdown, one for each mode; and of those that were
    measured with all costs, in the default mode, how much faster.
    """
    points = {costs: kept["runs"].get(_run(DEFAULT.name, costs), {}) for costs in BAND}
    points = {costs: run.get("points", {}) for costs, run in points.items()}
    whole = {name: run for name, run in kept["runs"].items() if run["costs"] == "expected"}
    tables = [_of(name, run["points"]) for name, run in whole.items()]
    if banded := [point for point in POINTS if all(point in one for one in points.values())]:
        tables.append(_band(points, banded))
    return "\n".join(tables)


def _run(mode: str, costs: str) -> str:
    return f"{mode}, {costs} costs"


def _band(points: dict[str, Any], banded: list[str]) -> str:
    """Of points by costs."""
    lines = [
        f"| {DEFAULT.name}: `remat` faster than `deepum` | {' | '.join(points)} |",
        "|" + "---|" * (1 + len(points)),
    ]
    faster = {
        costs: [of[point]["deepum"] / of[point]["remat"] for point in banded]
        for costs, of in points.items()
    }
    for point, *of_point in zip(banded, *faster.values(), strict=True):
        lines.append(f"| `{point}` | {' | '.join(f'{one:.2f}' for one in of_point)} |")
    means = " | ".join(f"{geometric_mean(one):.2f}" for one in faster.values())
    lines.append(f"| geometric mean, {len(banded)} | {means} |")
    return "\n".join(lines) + "\n"


def _of(name: str, points: dict[str, Any]) -> str:
    columns = [f"{name}: ms a step", "launches", "link", "bound of moving", "with recomputation"]
    columns += [
        "`deepum`",
        "`remat-alone`",
        "`remat`",
        "faster than `deepum`",
        "GiB in",
        "then",
    ]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for point, one in points.items():
        cells = [f"`{point}`"]
        cells += [f"{one[key]:.0f}" for key in (*FIGURES, "deepum")]
        only = one["remat-alone"]
        cells += ["-" if only is None else f"{only:.0f}", f"{one['remat']:.0f}"]
        cells += [f"{one['deepum'] / one['remat']:.2f}"]
        cells += [f"{one['gib_in'][of]:.1f}" for of in ("deepum", "remat")]
        lines.append("| " + " | ".join(cells) + " |")
    mean = geometric_mean(one["deepum"] / one["remat"] for one in points.values())
    cells = [f"geometric mean, {len(points)}", *[""] * 7, f"{mean:.2f}", "", ""]
    lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


KEPT = Kept("recomputation", "docs/recomputation.md", table, "recomputation.json")


def main() -> int:
    parser = KEPT.parser(__doc__)
    parser.add_argument("--points", help="WORKLOAD@MACHINE, with commas between them")
    parser.add_argument("--mode", choices=MODES, default=DEFAULT.name, help="(%(default)s)")
    add_costs(parser)
    given = parser.parse_args()
    if given.page:
        KEPT.write_page(given.json)
        return 0
    kept = results_in(given.json, "runs")
    name = _run(given.mode, given.costs)
    points = given.points.split(",") if given.points else POINTS

    def of_point(point: str) -> dict[str, Any]:
        return measure(point, given.mode, given.costs)

    for point, found in measure_points(given, kept, name, points, of_point):
        moving, joined = found["deepum"], found["remat"]
        print(
            f"{point}: deepum {moving:.0f} ms, remat-alone {found['remat-alone'] or 0:.0f}, "
            f"remat {joined:.0f}: {moving / joined:.2f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
