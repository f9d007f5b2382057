"""What planning brings a program while it runs: a step of the default policy and of the one that
plans, of the lower bound of unified memory, and the longest step while plans are tried.

    python benchmarks/planned.py                            # all points, gated, expected costs
    python benchmarks/planned.py --mode lock-step --costs kind
    python benchmarks/planned.py --set others               # all other pairs that do not fit
    python benchmarks/planned.py --set held-out             # those that nothing is tuned on
    python benchmarks/planned.py --set g10 --g10 FOLDER     # G10's, which are in that folder
    python benchmarks/planned.py --set h100 --costs machine # the driver as it was measured there
    python benchmarks/planned.py --points t5-large@v100-16gb --costs kind   # one of the set
    python benchmarks/planned.py --policies planned-declared    # of the rest, what is kept stays
    python benchmarks/planned.py --bounds                   # of the bounds alone, all policies stay
    python benchmarks/planned.py --page                     # docs/planned.md of what is kept

Gated is as a run on a GPU is by default. A point takes 26 steps, with clean pages 50, and 56 with
both: these are tried when plans were. Three are counted, those before the last one. Plans are made
at once, so that iterations while they are made are not in it. Results are kept in
FILE (--json) as each point is done, by set, mode and costs. A workload's numbers have semicolons
between them in --points, and memory of the card behind the machine, where it is not all of it:
`unet:batch=10;width=288@h100-80gb/16GiB`. `--costs machine`: the machine's own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import truediv
from pathlib import Path
from statistics import fmean, geometric_mean, median
from typing import Any

from kept import ROOT, Kept, add_costs, measure_points, names_of, results_in

from deepum.errors import DeepumError, UsageError
from deepum.simulate import bound
from deepum.simulate.driver import BAND, Driver
from deepum.simulate.mode import DEFAULT, MODES, mode_of
from deepum.simulate.policies import BY_NAME
from deepum.simulate.policy_run import run
from deepum.simulate.preset import preset_of
from deepum.simulate.relaxation import linear_bound_ns
from deepum.simulate.steps import steps
from deepum.simulate.workload import load
from deepum.simulate.workload_bounds import lower_bounds
from deepum.sizes import parse_size
from deepum.workloads.held_out import HELD_OUT

NAMED = (
    "resnet152@v100-16gb",
    "bert-base@v100-16gb",
    "bert-large@v100-16gb",
    "gpt2-small@v100-16gb",
    "gpt2-l@v100-16gb",
    "t5-large@v100-16gb",
    "unet@v100-16gb",
    "llama-7b-lora@v100-16gb",
    "llama-7b@v100-16gb",
    "llama-7b@a100-40gb",
    "dlrm-dense@v100-16gb",
    "dlrm-dense@rtx4090",
)
# Named workloads that repeat themselves, and the machines that do not hold them: all but `lstm`,
# `llama-long` and `llama-decode`, of which no two iterations are alike.
NOT_FITTING = {
    "resnet152": ("v100-16gb",),
    "resnet200": ("v100-16gb", "v100-32gb", "rtx4090"),
    "mobilenet": ("v100-16gb", "rtx4090"),
    "dcgan": ("v100-16gb", "v100-32gb", "rtx4090"),
    "bert-base": ("v100-16gb", "rtx4090"),
    "bert-large": ("v100-16gb", "rtx4090"),
    "gpt2-small": ("v100-16gb", "rtx4090"),
    "gpt2-l": ("v100-16gb", "rtx4090"),
    "gpt2-xl": ("v100-16gb", "v100-32gb", "a100-40gb", "rtx4090"),
    "t5-large": ("v100-16gb", "v100-32gb", "rtx4090"),
    "unet": ("v100-16gb", "rtx4090"),
    "vit-huge": ("v100-16gb", "rtx4090"),
    "experts": ("v100-16gb", "v100-32gb", "rtx4090"),
    "llama-7b-lora": ("v100-16gb", "v100-32gb", "rtx4090"),
    "llama-7b": ("v100-16gb", "v100-32gb", "a100-40gb", "rtx4090"),
    "dlrm": ("v100-16gb", "rtx4090"),
    "dlrm-dense": ("v100-16gb", "rtx4090"),
}
# What of that card workloads get that were chosen for a smaller one.
ON_H100 = {
    "resnet152": "16GiB",
    "gpt2-small": "16GiB",
    "t5-large": "16GiB",
    "unet": "16GiB",
    "llama-7b-lora": "16GiB",
    "llama-7b": "40GiB",
    "dlrm-dense": "16GiB",
}
_OTHER_NUMBERS = {workload.partition(":")[0]: workload for workload in HELD_OUT}
SETS = {
    "named": NAMED,
    "others": tuple(
        point
        for workload, machines in NOT_FITTING.items()
        for point in (f"{workload}@{machine}" for machine in machines)
        if point not in NAMED
    ),
    "held-out": tuple(
        f"{_OTHER_NUMBERS[n]}@{on}" for n, _, on in (p.partition("@") for p in NAMED)
    ),
    "g10": tuple(f"{n}@a100-40gb-g10" for n in ("BERT_Base-b256", "VIT-b1280", "ResNet152-b1280")),
    "h100": tuple(f"{n}@h100-80gb/{part}" for n, part in ON_H100.items()),
}
STEPS = {
    "deepum": 26,
    "planned": 26,
    "deepum-clean": 50,
    "planned-clean": 56,
    "planned-declared": 56,
}
# Bounds above that of unified memory, by their key in the results.
TIGHTER = {
    "driver_bound_ms": "with the driver's costs",
    "plans_bound_ms": "of all plans, with them",
}
AIMS = (1.05, 1.15)  # of the bound: in the mean, and for the worst pair
EVERYDAY = "gated, expected costs"  # the run that a user would meet
MACHINES_OWN = "machine"  # costs: what the machine's own driver does
COUNTED = 3  # of the last steps, without the very last
FIRST_KNOWN = 4  # steps behind which the default policy is steady


@dataclass(frozen=True)
class Point:
    """memory: of the card, in bytes."""

    workload: str
    machine: str
    memory: int

    @classmethod
    def named(cls, name: str, g10: Path) -> Point:
        """Raises UsageError for an unknown machine, and for what is not a size."""
        workload, _, on = name.partition("@")
        machine, _, part = on.partition("/")
        try:
            memory = parse_size(part) if part else int(preset_of(machine).memory_bytes)
        except ValueError as error:
            raise UsageError(f"point {name}: {error}") from None
        return cls(str(g10 / workload) if name in SETS["g10"] else workload, machine, memory)


def measure(
    point: str, mode: str, costs: str, g10: Path, policies: Iterable[str] = STEPS
) -> dict[str, Any]:
    """g10: the folder of G10's workloads. Raises DeepumError."""
    at = Point.named(point, g10)
    workload = load(at.workload, STEPS["deepum"], False, at.machine)
    preset, driver = preset_of(at.machine), _driver(costs)
    link = bound.Link(at.memory, float(preset.h2d_gbps), float(preset.d2h_gbps))
    links = [link, replace(link, handling=driver.handling(preset))]
    fitting = run(workload, at.machine, BY_NAME["unlimited"], keep_launches=True)
    _, (least, paid) = lower_bounds(workload, fitting, links, STEPS["deepum"] - COUNTED - 1)
    if least is None or paid is None:
        raise DeepumError(f"{point}: has no bound")
    plans = linear_bound_ns(workload, at.machine, at.memory, links[1].handling)
    return {
        "bound_ms": least / 1e6,
        "driver_bound_ms": paid / 1e6,
        "plans_bound_ms": max(paid, plans or 0.0) / 1e6,
        "policies": {policy: _step(at, policy, mode, costs) for policy in policies},
    }


def _driver(costs: str) -> Driver:
    return Driver() if costs == MACHINES_OWN else BAND[costs]


def _step(at: Point, policy: str, mode: str, costs: str) -> dict[str, float]:
    workload = load(at.workload, STEPS[policy], False, at.machine)
    driver = _driver(costs)
    how = mode_of(mode, driver.costs)
    found = run(workload, at.machine, BY_NAME[policy], at.memory, driver=driver, mode=how)
    took = [step.ns / 1e6 for step in steps(found, workload.trace)[:-1]]
    return {"ms": fmean(took[-COUNTED:]), "longest_ms": max(took[FIRST_KNOWN:])}


def table(kept: dict[str, Any]) -> str:
    """Of all points, in Markdown, one for each mode and costs; and what they come to, of all pairs
    that do not fit.
    """
    tables = [_of(name, one["points"]) for name, one in kept["runs"].items()]
    return "\n".join([*_together(kept["runs"]), *tables])


def _together(runs: dict[str, Any]) -> list[str]:
    """A table of the mean, the median and the worst of the runs of the named points and of the
    others, which are all pairs of NOT_FITTING; none where one of the two is missing.
    """
    if "others, " + EVERYDAY not in runs or EVERYDAY not in runs:
        return []
    points = {**runs[EVERYDAY]["points"], **runs["others, " + EVERYDAY]["points"]}
    policies = [one for one in STEPS if all(one in p["policies"] for p in points.values())]
    columns = [f"all {len(points)}, {EVERYDAY}: of the bound", "geometric mean", "median", "worst"]
    columns += ["at", *(f"up to {most}" for most in AIMS)]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for policy in policies:
        of = {
            point: one["policies"][policy]["ms"] / one["bound_ms"] for point, one in points.items()
        }
        worst = max(of, key=lambda point: of[point])
        cells = [f"`{policy}`", f"{geometric_mean(of.values()):.3f}", f"{median(of.values()):.3f}"]
        cells += [f"{of[worst]:.3f}", f"`{worst}`"]
        cells += [str(sum(ratio <= most for ratio in of.values())) for most in AIMS]
        lines.append("| " + " | ".join(cells) + " |")
    return ["\n".join(lines) + "\n"]


def _of(name: str, points: dict[str, Any]) -> str:
    """Of the policies that each of these points was measured under."""
    policies = [one for one in STEPS if all(one in p["policies"] for p in points.values())]
    bounds = {
        title: [one[key] for one in points.values()]
        for key, title in TIGHTER.items()
        if all(key in one for one in points.values())
    }
    columns = [f"{name}: of the bound", "bound, ms", *bounds]
    columns += [f"`{policy}`" for policy in policies]
    columns.append("longest step of `planned`, of the step without")
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for number, (point, one) in enumerate(points.items()):
        bound, found = one["bound_ms"], one["policies"]
        cells = [f"`{point}`", f"{bound:.0f}"]
        cells += [f"{tighter[number] / bound:.3f}" for tighter in bounds.values()]
        cells += [f"{found[policy]['ms'] / bound:.3f}" for policy in policies]
        cells.append(f"{found['planned']['longest_ms'] / found['deepum']['ms']:.2f}")
        lines.append("| " + " | ".join(cells) + " |")
    figures = [*bounds.values()]
    figures += [[one["policies"][p]["ms"] for one in points.values()] for p in policies]
    least = [one["bound_ms"] for one in points.values()]
    means = [geometric_mean(map(truediv, of, least)) for of in figures]
    worst = max(
        one["policies"]["planned"]["longest_ms"] / one["policies"]["deepum"]["ms"]
        for one in points.values()
    )
    cells = [f"geometric mean, {len(points)}", "", *(f"{mean:.3f}" for mean in means)]
    lines.append("| " + " | ".join([*cells, f"at most {worst:.2f}"]) + " |")
    return "\n".join(lines) + "\n"


KEPT = Kept("planned", "docs/planned.md", table, "planned.json")


def main() -> int:
    parser = KEPT.parser(__doc__)
    parser.add_argument("--set", choices=SETS, default="named", help="of points (%(default)s)")
    parser.add_argument("--points", help="only these, kept in the set: WORKLOAD@MACHINE,...")
    parser.add_argument(
        "--g10",
        type=Path,
        default=ROOT.parent / "shared" / "workloads" / "g10",
        metavar="FOLDER",
        help="with G10's workloads (../shared/workloads/g10)",
    )
    parser.add_argument("--bounds", action="store_true", help="measure no policy, the bounds alone")
    parser.add_argument(
        "--policies", default=",".join(STEPS), help="with commas between them (all: %(default)s)"
    )
    parser.add_argument("--mode", choices=MODES, default=DEFAULT.name, help="(%(default)s)")
    add_costs(parser, MACHINES_OWN)
    given = parser.parse_args()
    if given.page:
        KEPT.write_page(given.json)
        return 0
    kept = results_in(given.json, "runs")
    of_set = "" if given.set == "named" else f"{given.set}, "
    whose = "the machine's own" if given.costs == MACHINES_OWN else given.costs
    run_name = f"{of_set}{given.mode}, {whose} costs"
    points = given.points.split(",") if given.points else SETS[given.set]
    names = [one.replace(";", ",") for one in points]

    known = kept["runs"].get(run_name, {"points": {}})["points"]
    policies = [] if given.bounds else names_of(parser, "policy", given.policies, STEPS)

    def of_point(point: str) -> dict[str, Any]:
        found = measure(point, given.mode, given.costs, given.g10, policies)
        before = known.get(point, {"policies": {}})["policies"]
        found["policies"] = {
            policy: {**before, **found["policies"]}[policy]
            for policy in STEPS
            if policy in before or policy in found["policies"]
        }
        return found

    for point, found in measure_points(given, kept, run_name, names, of_point):
        ratios = ", ".join(
            f"{name} {one['ms'] / found['bound_ms']:.3f}" for name, one in found["policies"].items()
        )
        print(f"{point}: bound {found['bound_ms']:.1f} ms; {ratios}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
