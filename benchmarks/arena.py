"""What static allocation reaches: each allocator's arena, of the bytes that live at one time.

    python benchmarks/arena.py --files DIR             # DIR: minimalloc/*.csv, idealloc/*.csv
    python benchmarks/arena.py --workloads bert-base,resnet152
    python benchmarks/arena.py --page                  # docs/arena.md of what is kept

A file named as NAME.BYTES.csv is to fit in so many bytes. Results are kept in FILE (--json) as each
input is done.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from kept import Kept, circumstances, results_in, save

from deepum.arena import Problem
from deepum.arena.allocator import ALLOCATORS, BY_NAME
from deepum.arena.buffers import read
from deepum.errors import DeepumError
from deepum.planners.planner import Limits
from deepum.simulate.lifetimes import lifetimes
from deepum.simulate.workload import load

NAMES = [allocator.name for allocator in ALLOCATORS]


def measure(problem: Problem, capacity: int | None, seconds: float, seeds: int) -> dict[str, Any]:
    """Of each allocator: bytes, and seconds; of the search by seed, from 1 on."""
    found: dict[str, list[dict[str, float]]] = {}
    for name in NAMES:
        for seed in range(1, (seeds if name == "search" else 1) + 1):
            began = time.monotonic()
            best = BY_NAME[name]().best(problem, Limits(seconds, seed), capacity)
            took = round(time.monotonic() - began, 2)
            found.setdefault(name, []).append({"bytes": best.bytes, "seconds": took})
    return {
        "buffers": len(problem),
        "load_bytes": problem.load,
        "capacity_bytes": capacity,
        "allocators": found,
    }


def of_file(file: Path, seconds: float, seeds: int) -> dict[str, Any]:
    """Raises UsageError."""
    middle = file.name.split(".")[1:-1]
    capacity = int(middle[0]) if middle and middle[0].isdigit() else None
    return measure(Problem(read(str(file))), capacity, seconds, seeds)


def of_workload(name: str, seconds: float, seeds: int) -> dict[str, Any]:
    """Raises DeepumError."""
    loaded = load(name, None, False)
    taken = lifetimes(loaded, loaded.machine)
    found = measure(Problem(taken.buffers), None, seconds, seeds)
    return found | {"reserved_bytes": taken.reserved_bytes}


def _search(one: dict[str, Any]) -> list[str]:
    """Cells: the best of the search's, how many seeds reached the goal, their median time and the
    longest.
    """
    tries = one["allocators"]["search"]
    goal = max(one["capacity_bytes"] or 0, one["load_bytes"])
    reached = sorted(found["seconds"] for found in tries if found["bytes"] <= goal)
    best = min(found["bytes"] for found in tries) / one["load_bytes"]
    took = [f"{at:.2f} s" for at in (median(reached), reached[-1])] if reached else ["-", "-"]
    return [f"{best:.4f}", f"{len(reached)} of {len(tries)}", *took]


def table(kept: dict[str, Any]) -> str:
    """Of all inputs, in Markdown."""
    columns = ["", "buffers", "load", "goal / load", "caching allocator"]
    columns += [*NAMES, "seeds at the goal", "their median", "longest"]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for name, one in kept["inputs"].items():
        load_bytes = one["load_bytes"]
        goal = max(one["capacity_bytes"] or 0, load_bytes)
        reserved = one.get("reserved_bytes")
        cells = [f"`{name}`", str(one["buffers"]), str(load_bytes), f"{goal / load_bytes:.4f}"]
        cells.append(f"{reserved / load_bytes:.3f}" if reserved else "-")
        cells += [
            f"{one['allocators'][allocator][0]['bytes'] / load_bytes:.3f}"
            for allocator in NAMES
            if allocator != "search"
        ]
        lines.append("| " + " | ".join([*cells, *_search(one)]) + " |")
    return "\n".join(lines) + "\n"


KEPT = Kept("arena", "docs/arena.md", table, "arena.json")


def main() -> int:
    parser = KEPT.parser(__doc__)
    parser.add_argument("--files", type=Path, metavar="DIR", help="CSV files in folders of it")
    parser.add_argument("--workloads", default="", help="with commas between them")
    parser.add_argument("--seconds", type=float, default=10.0, help="an allocator (%(default)s)")
    parser.add_argument("--seeds", type=int, default=10, help="of the search (%(default)s)")
    given = parser.parse_args()
    if given.page:
        KEPT.write_page(given.json)
        return 0
    kept = results_in(given.json, "inputs")
    files = sorted(given.files.glob("*/*.csv")) if given.files else []
    for name in [*files, *filter(None, given.workloads.split(","))]:
        try:
            if isinstance(name, Path):
                found = of_file(name, given.seconds, given.seeds)
            else:
                found = of_workload(name, given.seconds, given.seeds)
        except DeepumError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        label = f"{name.parent.name}/{name.name}" if isinstance(name, Path) else name
        kept |= circumstances(seconds=given.seconds)
        kept["inputs"][label] = found
        save(given.json, kept)
        print(f"{label}: {_search(found)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
