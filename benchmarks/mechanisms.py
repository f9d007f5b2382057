"""What each mechanism of the planner and of the eviction orders is worth: the time of a step
without it over the time with it.

    python benchmarks/mechanisms.py --list
    python benchmarks/mechanisms.py --set both     # all of them; a minute each on two cores
    python benchmarks/mechanisms.py --only early-discards,modest --set held-out
    python benchmarks/mechanisms.py --page         # docs/research/mechanisms.md of what is kept

A mechanism is an edit of the core's sources that takes it out. The core is built with it in a copy,
and simulates what benchmarks/parameters.py does: each workload as it is and as a program that waits
for the GPU after each step, default policy, gated, the expected driver, steady steps. What is found
is kept in FILE (--json), and is not simulated again unless the time with all mechanisms has
changed. A mechanism without which nothing is slower has no place in the core;
docs/decisions/016-less-planning.md has those that went.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from edited_copy import EditedCopy
from mechanism_list import MECHANISMS, Mechanism
from parameters import AS_IT_IS, MATTERS, SETS, WAITS, Point, Times, measure

from deepum.simulate.sweep import cores

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "benchmarks" / "results" / "mechanisms.json"
PAGE = ROOT / "docs" / "research" / "mechanisms.md"
MACHINE = "v100-16gb"
ALL = ""  # with all mechanisms


def simulate(names: Sequence[str]) -> Times:
    """ms a step of each workload with the core of this Python."""
    points = [Point(name, MACHINE, (AS_IT_IS,)) for name in names]
    return {name: times[AS_IT_IS] for name, times in measure(points, cores())}


def simulate_without(mechanism: Mechanism, names: Sequence[str], copy: EditedCopy) -> Times:
    """The same with the core of the copy, without that mechanism. Exits the program if it cannot be
    built or run.
    """
    with copy.edited([mechanism]):
        command = [sys.executable, str(Path(__file__).resolve()), "--measure", *names]
        ran = subprocess.run(
            command, env=copy.environment(), stdout=subprocess.PIPE, text=True, check=False
        )
    if ran.returncode != 0:
        raise SystemExit(
            f"deepum: error: {mechanism.name}: its simulations exit with {ran.returncode}"
        )
    return dict(json.loads(ran.stdout))


def cell(found: Mapping[str, float]) -> str:
    """The geometric mean; the worst; the best where it is better."""
    if not found:
        return "-"
    worst, best = max(found, key=lambda name: found[name]), min(found, key=lambda name: found[name])
    extremes = [
        f"`{name.partition(':')[0]}` {found[name]:.3f}"
        for name in (worst, best)
        if abs(found[name] - 1) > MATTERS
    ]
    return f"{geometric_mean(found.values()):.3f}" + (
        f" ({', '.join(dict.fromkeys(extremes))})" if extremes else ""
    )


def ratios(
    times: Mapping[str, Times], mechanism: str, names: Sequence[str], waits: bool
) -> dict[str, float]:
    """Of each workload, without the mechanism over with it; those that wait, or those as
    they are.
    """
    found = times.get(mechanism, {})
    kept = [
        name
        for name in names
        if name in found and name in times[ALL] and name.endswith(WAITS) == waits
    ]
    return {name.removesuffix(WAITS): found[name] / times[ALL][name] for name in kept}


def page(times: Mapping[str, Times]) -> str:
    """docs/research/mechanisms.md."""
    columns = [(label, waits) for label in SETS for waits in (False, True)]
    heads = " | ".join(f"{label}{WAITS}" if waits else label for label, waits in columns)
    lines = [
        "# Mechanisms of the planner and of the eviction orders",
        "",
        (
            "What each is worth: the time of a step of the core without it over the time with it. "
            "Geometric means, and in brackets the workload"
        ),
        (
            f"that loses most and the one that gains most, where that is more than {MATTERS:.1%}. "
            f"A workload is simulated as it is, and as a program"
        ),
        (
            f"that waits for the GPU after each step (`waits`); on {MACHINE}, default policy, "
            f"gated, the expected driver; steady steps."
        ),
        "",
        "    python benchmarks/mechanisms.py --set both && python benchmarks/mechanisms.py --page",
        "",
        (
            "Some stay for what is not in the table; the list of mechanisms "
            "(`benchmarks/mechanism_list.py`) says for what. Those that went:"
        ),
        (
            "[decision 016](../decisions/016-less-planning.md). The numbers behind them: "
            "[parameters](parameters.md)."
        ),
        "",
        f"| mechanism | without it | {heads} | stays also for |",
        f"|{'---|' * (3 + len(columns))}",
    ]
    for one in MECHANISMS:
        cells = [cell(ratios(times, one.name, SETS[label], waits)) for label, waits in columns]
        lines.append(f"| `{one.name}` | {one.without} | {' | '.join(cells)} | {one.stays_for} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--set", choices=(*SETS, "both"), default="named", help="of workloads (%(default)s)"
    )
    parser.add_argument("--only", default="", help="mechanisms with commas between them")
    parser.add_argument(
        "--json",
        type=Path,
        default=FILE,
        metavar="FILE",
        help="what is kept (benchmarks/results/mechanisms.json)",
    )
    parser.add_argument(
        "--folder", type=Path, help="keep the copy and its build there, for the next time"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--page", action="store_true", help="make the page of what is kept, instead")
    which.add_argument(
        "--list", action="store_true", help="say which mechanisms there are, instead"
    )
    # As a process with the copy's core.
    which.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    kept: dict[str, Any] = (
        json.loads(options.json.read_text(encoding="utf-8")) if options.json.is_file() else {}
    )
    times: dict[str, Times] = kept.get("ms", {})
    if options.list:
        print("\n".join(f"{one.name:24} {one.without}" for one in MECHANISMS))
        return 0
    if options.measure:
        print(json.dumps(simulate(options.measure)))
        return 0
    if options.page:
        if not times:
            parser.error(f"--json {options.json}: there is no such file; run without --page first")
        PAGE.write_text(page(times), encoding="utf-8")
        return 0
    known = {one.name: one for one in MECHANISMS}
    wanted = [word for word in options.only.split(",") if word] or list(known)
    if unknown := [name for name in wanted if name not in known]:
        parser.error(
            f"--only {options.only}: no mechanism is called {', '.join(unknown)}; there are "
            f"{', '.join(known)}"
        )
    names = [name for label in SETS if options.set in (label, "both") for name in SETS[label]]
    now = simulate(names)
    changed = {name for name, ms in now.items() if times.get(ALL, {}).get(name) != ms}
    times = {
        mechanism: {name: ms for name, ms in found.items() if name not in changed}
        for mechanism, found in times.items()
    }
    times[ALL] = times.get(ALL, {}) | now
    with tempfile.TemporaryDirectory(prefix="deepum-mechanisms-") as folder:
        copy = EditedCopy(options.folder or Path(folder), flags="-O2")
        for mechanism in wanted:
            missing = [name for name in now if name not in times.get(mechanism, {})]
            if missing:
                times[mechanism] = times.get(mechanism, {}) | simulate_without(
                    known[mechanism], missing, copy
                )
            document = {
                "machine": MACHINE,
                "ms": {name: dict(sorted(found.items())) for name, found in sorted(times.items())},
            }
            options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
            cells = [cell(ratios(times, mechanism, names, waits)) for waits in (False, True)]
            print(f"{mechanism:24} as they are {cells[0]}; waiting {cells[1]}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
