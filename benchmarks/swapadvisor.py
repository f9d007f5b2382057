"""What SwapAdvisor's search reaches when memory is a part of the peak: throughput of that with
unlimited memory, of the program's own order in a default pool, of the search, and of deepum's
planner in both orders.

    python benchmarks/swapadvisor.py                       # the named workloads below
    python benchmarks/swapadvisor.py --points llama-7b@v100-16gb --generations 200
    python benchmarks/swapadvisor.py --page                # docs/swapadvisor.md of what is kept

Results are kept in FILE (--json) as each workload is done.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from statistics import geometric_mean
from typing import Any

from kept import Kept, circumstances, results_in, save

from deepum.errors import DeepumError
from deepum.planners import Link, Problem
from deepum.planners.evaluation import evaluate
from deepum.planners.planner import Limits
from deepum.simulate.iterations import steady_iteration
from deepum.simulate.sweep import cores, workers
from deepum.simulate.workload import load
from deepum.sizes import size
from deepum.swapadvisor import Engine, Graph
from deepum.swapadvisor.genetic import Parameters, search
from deepum.swapadvisor.graph import Schedule
from deepum.swapadvisor.starts import default
from deepum.swapadvisor.traced import graph_of, iteration_of

WORKLOADS = (
    *("resnet152", "dcgan", "bert-large", "gpt2-l", "dlrm-dense"),
    *("llama-7b", "unet", "t5-large"),
)
FRACTIONS = ("1", "1/2", "1/4", "1/8", "1/12")
WAYS = ("default", "swapadvisor", "plan", "plan_reordered")
TUNED = ("resnet152", "llama-7b")  # at 1/2: what the search's constants were chosen by


def planned(graph: Graph, schedule: Schedule, link: Link, seconds: float) -> float | None:
    """ms of deepum's planner, in that order; None where it finds no plan."""
    problem = Problem(iteration_of(graph, schedule), link)
    found = evaluate(problem, "search", Limits(seconds))
    return found.ns / 1e6 if found else None


def at(graph: Graph, link: Link, generations: int, seconds: float) -> dict[str, Any]:
    """ms of each way with that much memory, None where it cannot run."""
    engine = Engine(graph, link)
    start, last = default(engine), None
    parameters = Parameters(generations=generations, seconds=float("inf"))
    with workers(cores()) as executor:
        for found in search(engine, parameters, executor, cores()):
            last = found
    return {
        "memory_bytes": link.memory_bytes,
        "default": start[1].ns / 1e6 if start else None,
        "swapadvisor": last.best.ns / 1e6 if last else None,
        "plan": planned(graph, graph.program, link, seconds),
        "plan_reordered": planned(graph, last.best.schedule, link, seconds) if last else None,
        "search_seconds": round(last.seconds, 1) if last else None,
    }


def measure(point: str, generations: int, seconds: float) -> dict[str, Any]:
    """One workload with all parts of its peak. Raises DeepumError."""
    name, _, machine = point.partition("@")
    steady = steady_iteration(load(name, None, False, machine), machine)
    graph = graph_of(steady.iteration)
    peak = graph.peak_bytes(graph.program)
    memory = {part: int(peak * Fraction(part)) for part in FRACTIONS}
    return {
        "operators": len(graph.operators),
        "tensors": len(graph.tensors),
        "sizes": len({tensor.bytes for tensor in graph.tensors}),
        "peak_bytes": peak,
        "unlimited_ms": graph.compute_ns / 1e6,
        "parts": {
            part: at(
                graph, Link(count, steady.link.in_gbps, steady.link.out_gbps), generations, seconds
            )
            for part, count in memory.items()
        },
    }


def table(kept: dict[str, Any]) -> str:
    """Of all points, in Markdown."""
    lines = [
        "| workload | memory | default | SwapAdvisor | `plan` | `plan`, SwapAdvisor's order |",
        "|" + "---|" * 6,
    ]
    points: dict[str, Any] = kept["points"]
    for point, one in points.items():
        name = point.partition("@")[0]
        for part, found in one["parts"].items():
            mark = " [t]" if name in TUNED and part == "1/2" else ""
            cells = [
                f"{one['unlimited_ms'] / found[way]:.1%}" if found[way] else "-" for way in WAYS
            ]
            lines.append(
                f"| `{point}` | {part}, {size(found['memory_bytes'])}{mark} | "
                + " | ".join(cells)
                + " |"
            )
    for part in FRACTIONS:
        alike = [one for one in points.values() if all(one["parts"][part][way] for way in WAYS)]
        if not alike:
            continue
        means = [
            geometric_mean(one["unlimited_ms"] / one["parts"][part][way] for one in alike)
            for way in WAYS
        ]
        lines.append(
            f"| geometric mean, {len(alike)} | {part} | "
            + " | ".join(f"{mean:.1%}" for mean in means)
            + " |"
        )
    lines += ["", "-: no plan in which every operator can run. [t]: constants were chosen here."]
    return "\n".join(lines) + "\n"


KEPT = Kept("swapadvisor", "docs/swapadvisor.md", table, "swapadvisor.json")


def main() -> int:
    parser = KEPT.parser(__doc__)
    parser.add_argument("--points", help="WORKLOAD@MACHINE, with commas between them")
    parser.add_argument("--machine", default="v100-16gb", help="of the named (%(default)s)")
    parser.add_argument("--generations", type=int, default=60, help="of a search (%(default)s)")
    parser.add_argument("--seconds", type=float, default=5.0, help="of a planner (%(default)s)")
    given = parser.parse_args()
    if given.page:
        KEPT.write_page(given.json)
        return 0
    kept = results_in(given.json, "points")
    named = (f"{name}@{given.machine}" for name in WORKLOADS)
    for point in given.points.split(",") if given.points else named:
        try:
            found = measure(point, given.generations, given.seconds)
        except DeepumError as error:
            print(f"{point}: {error}", file=sys.stderr)
            continue
        kept |= circumstances(generations=given.generations, seconds=given.seconds)
        kept["points"][point] = found
        save(given.json, kept)
        shares = ", ".join(
            f"{part} {found['unlimited_ms'] / one['swapadvisor']:.1%}"
            for part, one in found["parts"].items()
            if one["swapadvisor"]
        )
        print(f"{point}: {shares}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
