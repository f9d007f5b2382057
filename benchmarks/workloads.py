"""All named workloads on machines under policies: time a step against on-demand paging and against the lower bounds.

    python benchmarks/workloads.py                                   # all of them on v100-16gb
    python benchmarks/workloads.py --only gpt2-xl,dlrm --machine v100-32gb,h200 --pressure 1.5
    python benchmarks/workloads.py --set both                        # and the held-out ones, which nothing is tuned on
    python benchmarks/workloads.py --captures                        # what they are, for docs/workloads.md
    python benchmarks/workloads.py --json FILE && deepum report FILE --image FILE.svg

`--pressure X` gives the card the X-th part of what the workload has allocated at most, so that machines of any size are compared alike.
The bounds are those of docs/simulate.md: what no schedule is below, and (UM) what no system of unified memory is below. The geometric
means are over workloads that do not fit the card; where all fits there is nothing to decide, and a second line counts these, too. What is
slower than on-demand paging, and what is farthest above the bound, is named at the end. FILE is as `deepum simulate --json` writes it for
several workloads. All cores are used (`--jobs`); a workload that fails is told, and the others go on.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from deepum.capture.record import capture
from deepum.cli.driver_options import capacity_error_bytes
from deepum.errors import DeepumError
from deepum.simulate import policies
from deepum.simulate.comparison import Comparison, means, preset_of
from deepum.simulate.driver import COSTS, DISCARDS, FAULTS, Driver
from deepum.simulate.mode import LOCK_STEP, MODES, mode_of
from deepum.simulate.point import Point, simulate
from deepum.simulate.steps import WARM_UP
from deepum.simulate.sweep import Failure, sweep
from deepum.sizes import size
from deepum.workloads import WORKLOADS, parse
from deepum.workloads.held_out import HELD_OUT

_ORDERS = [name for name in policies.BY_NAME if name.endswith("-use")]  # ours, but by another order of eviction
_POLICIES = ",".join([*(name for name in policies.DEFAULT if name != "unlimited"), *_ORDERS])
SETS = {"named": tuple(WORKLOADS), "held-out": HELD_OUT}
_SLOWER = 1.005  # than on-demand
_WORST = 6
_WIDTH = 35  # of a policy's columns


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


def _short(found: Comparison) -> str:
    return found.workload.partition(":")[0]


def _unlimited_ms(found: Comparison) -> float:
    return found.rows["unlimited"].ns / 1e6


def _ms(ns: float | None, digits: int) -> str:
    return "-" if ns is None else f"{ns / 1e6:.{digits}f}"


def _head(on: str, names: Iterable[str]) -> str:
    columns = f"{'':<14}{'peak':>10}{'unlimited':>10}{'bound':>10}{'bound (UM)':>12}"
    columns += "".join(f"{name:>{_WIDTH}}" for name in ("on-demand", *names))
    return f"{on}, ms a step; each policy: ms, over on-demand, of the bound, of the bound (UM)\n{columns}"


def _fits(found: Comparison, name: str) -> bool:
    return found.rows[name].does_not_fit is None


def _line(found: Comparison, names: Iterable[str]) -> str:
    bounds = f"{_ms(found.bound_ns, 1):>10}{_ms(found.kept_bound_ns, 1):>12}"
    cells = [f"{_short(found):<14}{size(found.footprint.allocated):>10}{_unlimited_ms(found):10.1f}{bounds}"]
    for name in names:
        _, over_on_demand, of_bound = found.ratios(name)
        told = "".join(f"{ratio:8.2f}" if ratio is not None else f"{'-':>8}" for ratio in (of_bound, found.of_kept_bound(name)))
        fitting = f"{found.rows[name].ns / 1e6:10.1f}{over_on_demand:9.2f}{told}"
        cells.append(fitting if _fits(found, name) else f"{'does not fit':>{_WIDTH}}")
    return "".join(cells)


def _markdown(every: list[Comparison], names: list[str]) -> list[str]:
    """For docs/workloads.md: ms a step, and of the bounds."""
    lines = [f"| workload | machine | unlimited | bound | bound (UM) | on-demand | {' | '.join(names)} |", f"|{'---|' * (6 + len(names))}"]
    for found in every:
        cells = [f"`{_short(found)}`", found.machine, f"{_unlimited_ms(found):.0f}"]
        cells += [_ms(found.bound_ns, 0), _ms(found.kept_bound_ns, 0)]
        for name in ("on-demand", *names):
            both = [f"{ratio:.2f}" for ratio in (found.ratios(name)[2], found.of_kept_bound(name)) if ratio is not None]
            told = _ms(found.rows[name].ns, 0) + (f" ({', '.join(both)})" if both else "")
            cells.append(told if _fits(found, name) else "does not fit")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _summary(every: list[Comparison], names: list[str]) -> list[str]:
    lines = []
    for name in names:
        fitting = [found for found in every if _fits(found, name)]
        pressed = [found for found in fitting if found.footprint.allocated > found.memory_bytes and found.bound_ns is not None]
        mean = means(pressed, name)
        if mean is not None:
            told = f"{mean.of_bound:.3f} of the bound, {mean.of_kept_bound:.3f} of the bound (UM), {mean.over_on_demand:.2f} over on-demand"
            lines.append(f"{name}: {told} (geometric means of {mean.count})")
        whole = means([found for found in fitting if found.bound_ns is not None], name)
        if mean is not None and whole is not None and whole.count > mean.count:
            told = f"{whole.of_bound:.3f} of the bound, {whole.of_kept_bound:.3f} of the bound (UM)"
            lines.append(f"  with those that fit the card: {told} (of {whole.count})")
        where = [(f"{_short(found)} on {found.machine}", found.ratios(name)[1]) for found in fitting]
        slower = [f"{place} ({1 / speed_up:.2f})" for place, speed_up in where if speed_up * _SLOWER < 1]
        lines.append(f"  slower than on-demand: {', '.join(slower) or 'none'}")
        far = sorted(((found.ratios(name)[2] or 0.0, f"{_short(found)} on {found.machine}") for found in pressed), reverse=True)
        lines.append(f"  farthest above the bound: {', '.join(f'{place} ({of_bound:.2f})' for of_bound, place in far[:_WORST])}")
    return lines


def _simulated(points: list[Point], names: list[str], jobs: int | None, cluster: str | None) -> list[Comparison]:
    """Those that did not fail, each with its line once it is there."""
    every: list[Comparison] = []
    headed = ""
    for done in sweep(simulate, points, jobs, cluster, "simulating"):
        if done.point.machine not in (None, headed):
            headed = done.point.machine
            print(_head(headed, names), flush=True)
        if isinstance(done.result, Failure):
            print(done.result.line, file=sys.stderr)
        else:
            every.append(done.result)
            print(_line(done.result, ["on-demand", *names]), flush=True)
    return every


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", help="workloads, with commas between them; numbers behind ':' with semicolons")
    which.add_argument("--set", choices=(*SETS, "both"), default="named", help="all of the named ones, or of the held-out (%(default)s)")
    parser.add_argument("--machine", default="v100-16gb", help="machines, with commas between them")
    parser.add_argument("--policy", default=_POLICIES)
    parser.add_argument("--pressure", type=float, help="memory of the card: what the workload allocates at most, divided by this")
    parser.add_argument("--steps", type=int, help="instead of the workloads' own")
    parser.add_argument("--warm-up", type=int, default=WARM_UP, metavar="N", help="steps that do not count (%(default)s)")
    parser.add_argument("--synchronise", action="store_true", help="the program waits for the GPU after each step")
    parser.add_argument("--costs", choices=COSTS, help="what prefetches cost the driver beside their copies; by default the machine's")
    parser.add_argument("--discards", choices=DISCARDS, help="what the driver's discards do; by default the machine's")
    parser.add_argument("--fault-costs", choices=FAULTS, help="what paging on demand costs the driver; by default the machine's")
    parser.add_argument("--mode", choices=MODES, default=LOCK_STEP.name, help="how deepum runs beside the program (%(default)s)")
    parser.add_argument("--capacity-error", metavar="SIZE", help="by which the capacity that is told at the start is too high, or -SIZE")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes; all cores by default")
    parser.add_argument("--cluster", metavar="ADDRESS", help="of a Dask scheduler, on whose workers to simulate")
    parser.add_argument("--markdown", action="store_true", help="the table once more, as docs/workloads.md has it")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--captures", action="store_true", help="say what the workloads launch and allocate, instead")
    arguments = parser.parse_args()
    if arguments.warm_up < 0:
        parser.error(f"--warm-up {arguments.warm_up}: is negative; give how many steps do not count")
    sets = {name: SETS[name] for name in SETS if arguments.set in (name, "both")}
    if arguments.only:
        sets = {"chosen": tuple(name.replace(";", ",") for name in arguments.only.split(","))}
    try:
        if arguments.captures:
            _captures(name for names in sets.values() for name in names)
            return
        chosen = policies.parse(arguments.policy)
        names = [one.name for one in chosen if one.name != "on-demand"]
        machines = arguments.machine.split(",")
        for on in machines:
            preset_of(on)
        options = {
            "steps": arguments.steps,
            "synchronise": arguments.synchronise,
            "pressure": arguments.pressure,
            "warm_up": arguments.warm_up,
            "driver": Driver(arguments.costs, arguments.discards, arguments.fault_costs, capacity_error_bytes(arguments.capacity_error)),
            "mode": mode_of(arguments.mode, arguments.costs),
        }
        found: dict[str, list[Comparison]] = {}
        for title, workloads in sets.items():
            if len(sets) > 1:
                print(f"{title} workloads")
            points = [Point(name, chosen, on, **options) for on in machines for name in workloads]
            found[title] = _simulated(points, names, arguments.jobs, arguments.cluster)
            print("\n".join(_summary(found[title], names)), flush=True)
    except DeepumError as error:
        sys.exit(error.line)
    every = [one for some in found.values() for one in some]
    if arguments.markdown:
        print("\n".join(_markdown(every, names)))
    if arguments.json:
        told = {"version": 1, "simulations": [one.as_json() for one in every]}
        arguments.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    asked = len(machines) * sum(map(len, sets.values()))
    if len(every) < asked:
        sys.exit(f"deepum: error: {asked - len(every)} of {asked} simulations failed; see their lines above")


if __name__ == "__main__":
    main()
