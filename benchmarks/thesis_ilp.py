"""The evaluation of Lee's thesis (SNU, section 6.2) in the replay: ResNet-34 on a card like its
Radeon 5700 XT, the time of planned iterations over that of demand paging with LRU eviction.

    python benchmarks/thesis_ilp.py                        # batches 256 and 512, both memories
    python benchmarks/thesis_ilp.py --page                 # docs/ilp.md of what is kept

Results are kept in FILE (--json).
"""

from __future__ import annotations

import sys
from types import MappingProxyType
from typing import Any

from kept import ROOT, Kept, circumstances, save

from deepum.capture import cache
from deepum.errors import DeepumError
from deepum.machines import named
from deepum.planners import Problem
from deepum.planners.catalogue import PLANNERS
from deepum.planners.evaluation import evaluate
from deepum.planners.ilp.heuristic import Heuristic
from deepum.planners.ilp.paths import Paths
from deepum.planners.ilp.thesis import Form, ThesisProgram
from deepum.planners.ilp.tracing import Grain, trace
from deepum.planners.ilp.windows import Window, Windows
from deepum.planners.paging import demand_paging
from deepum.planners.planner import Belady, Limits
from deepum.simulate.iterations import steady_iteration
from deepum.simulate.workload import DEFAULT_STEPS, Workload
from deepum.workloads.registry import Named, Request

MACHINE = ROOT / "benchmarks" / "machines" / "rx5700xt.json"
BATCHES = (256, 512)
MEMORIES = {"8 GiB": 1.0, "85 %": 0.85}  # of the card's
OPERATIONS = (64, 128)  # of the thesis's pattern: the first at which its heuristic fits
_WINDOW = Window(operations=6, seconds=5.0)
PATHS_PART = 0.7  # of a form's time; windows have the rest
LEAST = 512  # part of the memory below which a tensor stays
PUBLISHED = {256: (0.62, 0.64), 512: (0.60, 0.57)}  # heuristic, ILP
FORMS = {
    "own sums": Form(versions=False),
    "own sums, dirty data dropped": Form(versions=False, drops_dirty=True),
    "one sum": Form(own_sums=False, versions=False),
}
NAMES = [planner.name for planner in PLANNERS]


def workload(batch: int) -> Workload:
    """ResNet-34's training. Raises DeepumError without PyTorch."""
    numbers = {"batch": batch, "image": 224, "stage1": 3, "stage2": 4, "stage3": 6, "stage4": 3}
    made = Named("resnet34", "ResNet-34", "images.basic_resnet", MappingProxyType(numbers))
    request = Request(made, made.numbers)
    multiprocessors = int(named(str(MACHINE)).native().multiprocessors)
    steps = DEFAULT_STEPS + 1
    trace_of_it = cache.captured(request, steps, multiprocessors=multiprocessors)
    return Workload(str(request), trace_of_it, str(MACHINE))


def thesis(problem: Problem, form: Form, seconds: float) -> dict[str, Any] | None:
    """ms of an iteration by the form's own account: of the heuristic in its states, of paths from
    there, and of the program's windows from there, with its bound; and of its plan in the replay.
    None where not even the heuristic's first step fits at so many operations.
    """
    limits = Limits(seconds)
    base = Belady().best(problem, limits)
    if base is None:
        return None
    ends = problem.replay(base.plan).ends_ns
    least = problem.link.memory_bytes // LEAST
    for operations in OPERATIONS:
        traced = trace(problem, base.plan, ends, Grain(operations, least_bytes=least))
        states = Heuristic(traced.pattern).states()
        if states is not None:
            break
    else:
        return None
    program = ThesisProgram(traced.pattern, form)
    relaxed = program.relaxed(limits.left)
    first = program.solve(limits.left, fixed=program.start(states))
    paths = Paths(traced.pattern, states, form)
    *_, by_paths = paths.improve(Limits(limits.left * PATHS_PART))
    found = list(
        Windows(program, _WINDOW).improve(
            program.start(paths.states()), limits, relaxed.bound_ns if relaxed else 0.0
        )
    )
    if first is None or not found:
        return None
    compute = problem.iteration.compute_ns
    return {
        "operations": len(traced.pattern),
        "tensors": len(traced.pattern.tensors),
        "columns": program.program.size[1],
        "heuristic_ms": (compute + first.stall_ns) / 1e6,
        "paths_ms": (compute + by_paths) / 1e6,
        "program_ms": (compute + found[-1].stall_ns) / 1e6,
        "bound_ms": (compute + found[-1].bound_ns) / 1e6,
        "heuristic_replayed_ms": problem.replay(traced.plan(first, base.plan)).ns / 1e6,
        "program_replayed_ms": problem.replay(traced.plan(found[-1], base.plan)).ns / 1e6,
    }


def measure(batch: int, part: float, seconds: float, program_seconds: float) -> dict[str, Any]:
    """Of a batch on that part of the card's memory. Raises DeepumError."""
    memory = int(named(str(MACHINE)).native().memory_bytes * part)
    steady = steady_iteration(workload(batch), str(MACHINE), memory)
    problem = Problem(steady.iteration, steady.link)
    found: dict[str, Any] = {
        "batch": batch,
        "memory_bytes": memory,
        "peak_bytes": int(problem.occupancy(problem.keep_all()).max()),
        "launches": problem.launches,
        "gaps": len(problem),
        "compute_ms": steady.iteration.compute_ns / 1e6,
        "bound_ms": steady.bound_ns / 1e6,
        "paging_ms": demand_paging(problem) / 1e6,
    }
    if problem.fits:
        return found
    evaluated = {name: evaluate(problem, name, Limits(seconds)) for name in NAMES}
    found["planners"] = {name: one.ns / 1e6 for name, one in evaluated.items() if one is not None}
    found["forms"] = {name: thesis(problem, form, program_seconds) for name, form in FORMS.items()}
    return found


def _ratios(one: dict[str, Any]) -> list[tuple[str, str]]:
    paging = one["paging_ms"]
    rows = [
        ("demand paging, LRU", "1"),
        ("computing alone", f"{one['compute_ms'] / paging:.3f}"),
        ("lower bound of unified memory", f"{one['bound_ms'] / paging:.3f}"),
    ]
    none = "-" if "planners" in one else "fits"
    for name in NAMES:
        ms = one.get("planners", {}).get(name)
        rows.append((f"`{name}`, replayed", f"{ms / paging:.3f}" if ms else none))
    for name in FORMS:
        form = one.get("forms", {}).get(name)
        for label, figure in (
            ("heuristic, own account", "heuristic_ms"),
            ("paths, own account", "paths_ms"),
            ("program from there, own account", "program_ms"),
            ("its bound", "bound_ms"),
            ("program's plan, replayed", "program_replayed_ms"),
        ):
            cell = f"{form[figure] / paging:.3f}" if form else none
            rows.append((f"thesis's form, {name}: {label}", cell))
    return rows


def table(kept: dict[str, Any]) -> str:
    """Of all points, in Markdown: a column for each, beside what was published."""
    points: dict[str, Any] = kept["points"]
    lines = ["| of demand paging | " + " | ".join(points) + " |", "|---" * (len(points) + 1) + "|"]
    for number, label in enumerate(("heuristic", "ILP")):
        cells = [f"{PUBLISHED[one['batch']][number]:.2f}" for one in points.values()]
        lines.append(f"| published: {label} | " + " | ".join(cells) + " |")
    columns = [_ratios(one) for one in points.values()]
    for rows in zip(*columns, strict=True):
        lines.append(f"| {rows[0][0]} | " + " | ".join(cell for _, cell in rows) + " |")
    cells = [f"{one['paging_ms']:.0f}" for one in points.values()]
    lines.append("| demand paging, ms | " + " | ".join(cells) + " |")
    cells = [f"{one['peak_bytes'] / 2**30:.2f}" for one in points.values()]
    lines.append("| most bytes in use, GiB | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


KEPT = Kept("thesis_ilp", "docs/ilp.md", table, "thesis-ilp.json")


def main() -> int:
    parser = KEPT.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="a planner (%(default)s)")
    parser.add_argument(
        "--program-seconds", type=float, default=90.0, help="a form of the thesis (%(default)s)"
    )
    given = parser.parse_args()
    if given.page:
        KEPT.write_page(given.json)
        return 0
    kept = circumstances(seconds=given.seconds, program_seconds=given.program_seconds, points={})
    for batch in BATCHES:
        for memory, part in MEMORIES.items():
            try:
                found = measure(batch, part, given.seconds, given.program_seconds)
            except DeepumError as error:
                print(f"error: batch {batch}, {memory}: {error}", file=sys.stderr)
                return 1
            kept["points"][f"batch {batch}, {memory}"] = found
            save(given.json, kept)
            ratios = ", ".join(f"{label} {cell}" for label, cell in _ratios(found))
            print(f"batch {batch}, {memory}: {ratios}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
