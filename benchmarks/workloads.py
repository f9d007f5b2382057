"""All named workloads on machines under policies: time a step against on-demand paging and against the lower bound.

    python benchmarks/workloads.py                                   # all of them on v100-16gb
    python benchmarks/workloads.py --only gpt2-xl,dlrm --machine v100-32gb,h200 --pressure 1.5
    python benchmarks/workloads.py --captures                        # what they are, for docs/workloads.md

`--pressure X` gives the card the X-th part of what the workload has allocated at most, so that machines of any size are compared alike.
The geometric means are over workloads that do not fit the card; where all fits there is nothing to decide. What is slower than on-demand
paging, and what is farthest above the bound, is named at the end.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from deepum.capture.record import capture
from deepum.core import Block, events
from deepum.errors import DeepumError
from deepum.machines import machines
from deepum.simulate import policies
from deepum.simulate.comparison import Comparison, compare
from deepum.simulate.workload import load
from deepum.statistics import size
from deepum.workloads import WORKLOADS, parse

_POLICIES = "on-demand,deepum-paper,lookahead-8,deepum,deepum-next-use"
_SLOWER = 1.005  # than on-demand
_WORST = 6
_UM_BLOCK = 2 << 20


def _peak(trace_events: bytes) -> int:
    """Most that PyTorch had allocated, bytes."""
    return max((event.allocated_bytes for event in events(trace_events) if isinstance(event, Block)), default=0)


def _captures(names: Iterable[str]) -> None:
    """A table of what workloads launch and allocate."""
    print("| workload | what it is | numbers | launches a step | TFLOP a step | allocated at most |")
    print("|---|---|---|---|---|---|")
    for name in names:
        request = parse(name)
        captured = capture(request, 4)
        numbers = ", ".join(f"{key} {number}" for key, number in request.numbers.items())
        cells = (f"`{request.named.name}`", request.named.description, numbers, f"{captured.launches}", f"{captured.flops / 1e12:.2f}")
        print(f"| {' | '.join(cells)} | {size(captured.peak_bytes)} |", flush=True)


def _row(found: Comparison, peak: int, seconds: float) -> dict[str, Any]:
    unlimited = found.rows["unlimited"].ns / 1e6
    told: dict[str, Any] = {"workload": found.workload, "machine": found.machine, "memory_bytes": found.memory_bytes}
    told |= {"peak_bytes": peak, "unlimited_ms": unlimited, "bound_ms": None, "seconds": seconds, "policies": {}}
    if found.bound_ns is not None and found.moving_bound_ns is not None:
        told |= {"bound_ms": found.bound_ns / 1e6, "moving_bound_ms": found.moving_bound_ns / 1e6}
    for name, row in found.rows.items():
        if row.does_not_fit is not None:
            continue
        _, on_demand, of_bound = found.ratios(name)
        told["policies"][name] = {"step_ms": row.ns / 1e6, "over_on_demand": on_demand, "of_bound": of_bound, "faults": row.count("faults")}
    return told


def _line(row: dict[str, Any], names: Iterable[str]) -> str:
    bound = f"{row['bound_ms']:10.1f}" if row["bound_ms"] is not None else f"{'-':>10}"
    cells = [f"{row['workload'].partition(':')[0]:<14}{size(row['peak_bytes']):>10}{row['unlimited_ms']:10.1f}{bound}"]
    for name in names:
        told = row["policies"].get(name)
        if told is None:
            cells.append(f"{'does not fit':>25}")
            continue
        of_bound = f"{told['of_bound']:8.2f}" if told["of_bound"] is not None else f"{'-':>8}"
        cells.append(f"{told['step_ms']:10.1f}{told['over_on_demand']:7.2f}{of_bound}")
    return "".join(cells)


def _markdown(rows: list[dict[str, Any]], names: list[str]) -> list[str]:
    """For docs/workloads.md: ms a step, and of the bound."""
    lines = [f"| workload | machine | unlimited | bound | on-demand | {' | '.join(names)} |", f"|{'---|' * (5 + len(names))}"]
    for row in rows:
        cells = [f"`{row['workload'].partition(':')[0]}`", row["machine"], f"{row['unlimited_ms']:.0f}"]
        cells.append("-" if row["bound_ms"] is None else f"{row['bound_ms']:.0f}")
        for name in ("on-demand", *names):
            told = row["policies"].get(name)
            if told is None:
                cells.append("does not fit")
                continue
            cells.append(f"{told['step_ms']:.0f}" + (f" ({told['of_bound']:.2f})" if told["of_bound"] is not None else ""))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def _summary(rows: list[dict[str, Any]], names: list[str]) -> list[str]:
    all_pressed = [row for row in rows if row["peak_bytes"] > row["memory_bytes"] and row["bound_ms"] is not None]
    lines = []
    for name in names:
        fitting = [row for row in rows if name in row["policies"]]
        pressed = [row for row in all_pressed if name in row["policies"]]
        told = [row["policies"][name] for row in pressed]
        bound, demand = _mean([one["of_bound"] for one in told]), _mean([one["over_on_demand"] for one in told])
        lines.append(f"{name}: {bound:.3f} of the bound, {demand:.2f} over on-demand (geometric means of {len(told)})")
        where = [f"{row['workload'].partition(':')[0]} on {row['machine']}" for row in fitting]
        slower = [
            f"{place} ({1 / one['over_on_demand']:.2f})"
            for place, one in zip(where, (row["policies"][name] for row in fitting), strict=True)
            if one["over_on_demand"] * _SLOWER < 1
        ]
        lines.append(f"  slower than on-demand: {', '.join(slower) or 'none'}")
        worst = sorted(pressed, key=lambda row: -row["policies"][name]["of_bound"])[:_WORST]
        far = [f"{row['workload'].partition(':')[0]} on {row['machine']} ({row['policies'][name]['of_bound']:.2f})" for row in worst]
        lines.append(f"  farthest above the bound: {', '.join(far)}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", default=",".join(WORKLOADS), help="workloads, with commas between them; numbers behind ':' with semicolons"
    )
    parser.add_argument("--machine", default="v100-16gb", help="machines, with commas between them")
    parser.add_argument("--policy", default=_POLICIES)
    parser.add_argument("--pressure", type=float, help="memory of the card: what the workload allocates at most, divided by this")
    parser.add_argument("--steps", type=int, help="instead of the workloads' own")
    parser.add_argument("--synchronise", action="store_true", help="the program waits for the GPU after each step")
    parser.add_argument("--markdown", action="store_true", help="the table once more, as docs/workloads.md has it")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--captures", action="store_true", help="say what the workloads launch and allocate, instead")
    arguments = parser.parse_args()
    rows = []
    try:
        if arguments.captures:
            _captures(name.replace(";", ",") for name in arguments.only.split(","))
            return
        chosen = policies.parse(arguments.policy)
        names = [one.name for one in chosen if one.name != "on-demand"]
        known = {machine.name for machine in machines()}
        for on in arguments.machine.split(","):
            if on not in known:
                raise SystemExit(f"machine '{on}': is unknown; choose from {', '.join(sorted(known))}")
            print(f"{on}, ms a step; each policy: ms, over on-demand, of the bound")
            print(f"{'':<14}{'peak':>10}{'unlimited':>10}{'bound':>10}{'on-demand':>25}" + "".join(f"{name:>25}" for name in names))
            for name in arguments.only.split(","):
                started = time.monotonic()
                loaded = load(name.replace(";", ","), arguments.steps, arguments.synchronise, on)
                peak = _peak(loaded.trace.events)
                memory = int(peak / arguments.pressure) // _UM_BLOCK * _UM_BLOCK if arguments.pressure else None
                found = compare(loaded, on, chosen, memory)
                rows.append(_row(found, peak, time.monotonic() - started))
                print(_line(rows[-1], ["on-demand", *names]), flush=True)
    except DeepumError as error:
        sys.exit(error.line)
    print("\n".join(_summary(rows, names)))
    if arguments.markdown:
        print("\n".join(_markdown(rows, names)))
    if arguments.json:
        arguments.json.write_text(json.dumps({"version": 1, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
