"""What planning a steady iteration reaches, of the lower bound of unified memory: each planner's
plan, carried out in an exact replay.

    python benchmarks/planners.py                          # named workloads that do not fit
    python benchmarks/planners.py --points gpt2-xl@v100-16gb,llama-7b@a100-40gb
    python benchmarks/planners.py --planners ilp           # into what is kept of the others
    python benchmarks/planners.py --page                   # docs/planning.md of what is kept

Results are kept in FILE (--json) as each workload is done.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from statistics import geometric_mean
from typing import Any

from kept import Kept, circumstances, results_in, save

from deepum.errors import DeepumError
from deepum.planners import Problem
from deepum.planners.catalogue import PLANNERS
from deepum.planners.evaluation import evaluate
from deepum.planners.planner import Limits
from deepum.simulate.iterations import steady_iteration
from deepum.simulate.workload import load
from deepum.workloads import WORKLOADS

NAMES = [planner.name for planner in PLANNERS]


def measure(point: str, seconds: float, names: Sequence[str] = NAMES) -> dict[str, Any] | None:
    """Of those planners. None where an iteration fits the card. Raises DeepumError."""
    name, _, machine = point.partition("@")
    steady = steady_iteration(load(name, None, False, machine), machine)
    problem = Problem(steady.iteration, steady.link)
    if problem.fits:
        return None
    found = {planner: evaluate(problem, planner, Limits(seconds)) for planner in names}
    return {
        "launches": problem.launches,
        "gaps": len(problem),
        "repeats": steady.repeats,
        "bound_ms": steady.bound_ns / 1e6,
        "lp_ms": max((one.bound_ns or 0.0 for one in found.values() if one), default=0.0) / 1e6,
        "planners": {
            planner: {"ms": one.ns / 1e6, "seconds": round(one.seconds, 2)}
            for planner, one in found.items()
            if one is not None
        },
    }


def table(kept: dict[str, Any]) -> str:
    """Of all points, in Markdown."""
    columns = ["of the bound", "bound, ms", "the LP's", *NAMES, "`search` planned in"]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    points: dict[str, Any] = kept["points"]
    for point, one in points.items():
        bound, found = one["bound_ms"], one["planners"]
        cells = [f"`{point}`" + ("" if one["repeats"] else " [a]"), f"{bound:.0f}"]
        cells.append(f"{one['lp_ms'] / bound:.3f}" if one["lp_ms"] else "-")
        cells += [f"{found[name]['ms'] / bound:.3f}" if name in found else "-" for name in NAMES]
        cells.append(f"{found['search']['seconds']:.1f} s" if "search" in found else "-")
        lines.append("| " + " | ".join(cells) + " |")
    repeating = [one for one in points.values() if one["repeats"]]
    means = [
        geometric_mean(one["planners"][name]["ms"] / one["bound_ms"] for one in repeating)
        if all(name in one["planners"] for one in repeating)
        else None
        for name in NAMES
    ]
    cells = [f"{mean:.3f}" if mean else "-" for mean in means]
    lines.append(
        f"| geometric mean without [a], {len(repeating)} | | | " + " | ".join(cells) + " | |"
    )
    lines += ["", "[a]: steps are not alike; the plan is of one of them, the bound of all."]
    return "\n".join(lines) + "\n"


KEPT = Kept("planners", "docs/planning.md", table, "planners.json")


def main() -> int:
    parser = KEPT.parser(__doc__)
    parser.add_argument("--points", help="WORKLOAD@MACHINE, with commas between them")
    parser.add_argument("--machine", default="v100-16gb", help="of the named (%(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0, help="a planner (%(default)s)")
    parser.add_argument("--planners", help="some alone, with commas between them")
    given = parser.parse_args()
    names = given.planners.split(",") if given.planners else NAMES
    if unknown := set(names) - set(NAMES):
        parser.error(f"no planner is called {', '.join(sorted(unknown))}; see deepum plan --help")
    if given.page:
        KEPT.write_page(given.json)
        return 0
    kept = results_in(given.json, "points")
    named = (f"{name}@{given.machine}" for name in WORKLOADS)
    for point in given.points.split(",") if given.points else named:
        try:
            found = measure(point, given.seconds, names)
        except DeepumError as error:
            print(f"{point}: {error}", file=sys.stderr)
            continue
        if found is None:
            print(f"{point}: fits")
            continue
        kept |= circumstances(seconds=given.seconds)
        before = kept["points"].get(point) if given.planners else None
        if before is not None:
            before["planners"] |= found["planners"]
            before["lp_ms"] = max(before["lp_ms"], found["lp_ms"])
        kept["points"][point] = before or found
        save(given.json, kept)
        ratios = ", ".join(
            f"{name} {one['ms'] / found['bound_ms']:.3f}" for name, one in found["planners"].items()
        )
        print(f"{point}: bound {found['bound_ms']:.1f} ms; {ratios}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
