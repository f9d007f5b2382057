"""All named workloads on machines under policies: time a step against on-demand paging and against
the lower bounds.

    python benchmarks/workloads.py                                   # all of them on v100-16gb
    python benchmarks/workloads.py --only gpt2-xl,dlrm --machine v100-32gb,h200 --pressure 1.5
    python benchmarks/workloads.py --set both              # and the held-out ones
    python benchmarks/workloads.py --band --policy deepum  # from a kind driver to an unkind one
    python benchmarks/workloads.py --captures              # what they are, for docs/workloads.md
    python benchmarks/workloads.py --json FILE && deepum report FILE --image FILE.svg

`--pressure X` gives the card the X-th part of what the workload has allocated at most, so that
machines of any size are compared alike. `--band` simulates all of it with each driver of
deepum.simulate.driver.BAND, and ends with a table for each policy. The bounds are those of
docs/simulate.md: what no schedule is below, and (UM) what no system of unified memory is below. The
geometric means are over workloads that do not fit the card; where all fits there is nothing to
decide, and a second line counts these, too. What is slower than on-demand paging, and what is
farthest above the bound, is named at the end. FILE is as `deepum simulate --json` writes it for
several workloads. All cores are used (`--jobs`); a workload that fails is told, and the others go
on.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import workload_tables as tables

from deepum.capture.record import capture
from deepum.cli.driver_options import capacity_error_bytes
from deepum.errors import DeepumError
from deepum.simulate import policies
from deepum.simulate.comparison import Comparison
from deepum.simulate.driver import BAND, BLOCKING, COSTS, DISCARDS, FAULTS, Driver
from deepum.simulate.mode import DEFAULT, MODES, mode_of
from deepum.simulate.point import Point, simulate
from deepum.simulate.preset import preset_of
from deepum.simulate.steps import WARM_UP
from deepum.simulate.sweep import Failure, sweep
from deepum.sizes import size
from deepum.workloads import WORKLOADS, parse
from deepum.workloads.held_out import HELD_OUT

# ours, but by another order of eviction.
_ORDERS = [name for name in policies.BY_NAME if name.endswith("-use")]
_POLICIES = ",".join([*(name for name in policies.DEFAULT if name != "unlimited"), *_ORDERS])
SETS = {"named": tuple(WORKLOADS), "held-out": HELD_OUT}


def _captures(names: Iterable[str]) -> None:
    """A table of what workloads launch and allocate."""
    print(
        "| workload | what it is | numbers | launches a step | TFLOP a step | allocated at most |"
    )
    print("|---|---|---|---|---|---|")
    for name in names:
        request = parse(name)
        captured = capture(request, 4)
        numbers = ", ".join(f"{key} {number}" for key, number in request.numbers.items())
        cells = (
            f"`{request.named.name}`",
            request.named.description,
            numbers,
            f"{captured.launches}",
            f"{captured.flops / 1e12:.2f}",
        )
        print(f"| {' | '.join(cells)} | {size(captured.peak_bytes)} |", flush=True)


def _simulated(
    points: list[Point], names: list[str], jobs: int | None, cluster: str | None
) -> list[Comparison]:
    """Those that did not fail, each with its line once it is there."""
    every: list[Comparison] = []
    headed = ""
    for done in sweep(simulate, points, jobs, cluster, "simulating"):
        if done.point.machine not in (None, headed):
            headed = done.point.machine
            print(tables.head(headed, names), flush=True)
        if isinstance(done.result, Failure):
            print(done.result.line, file=sys.stderr)
        else:
            every.append(done.result)
            print(tables.line(done.result, ["on-demand", *names]), flush=True)
    return every


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--only", help="workloads, with commas between them; numbers behind ':' with semicolons"
    )
    which.add_argument(
        "--set",
        choices=(*SETS, "both"),
        default="named",
        help="all of the named ones, or of the held-out (%(default)s)",
    )
    parser.add_argument("--machine", default="v100-16gb", help="machines, with commas between them")
    parser.add_argument("--policy", default=_POLICIES)
    parser.add_argument(
        "--pressure",
        type=float,
        help="memory of the card: what the workload allocates at most, divided by this",
    )
    parser.add_argument("--steps", type=int, help="instead of the workloads' own")
    parser.add_argument(
        "--warm-up",
        type=int,
        default=WARM_UP,
        metavar="N",
        help="steps that do not count (%(default)s)",
    )
    parser.add_argument(
        "--synchronise", action="store_true", help="the program waits for the GPU after each step"
    )
    parser.add_argument(
        "--band",
        action="store_true",
        help="a kind driver, the expected one and an unkind one, in the place of the next three",
    )
    parser.add_argument(
        "--costs",
        choices=COSTS,
        help="what prefetches cost the driver beside their copies; by default the machine's",
    )
    parser.add_argument(
        "--blocking",
        choices=BLOCKING,
        help="which calls block until their stream has come to them; by default none",
    )
    parser.add_argument(
        "--discards",
        choices=DISCARDS,
        help="what the driver's discards do; by default the machine's",
    )
    parser.add_argument(
        "--fault-costs",
        choices=FAULTS,
        help="what paging on demand costs the driver; by default the machine's",
    )
    parser.add_argument(
        "--mode",
        choices=MODES,
        default=DEFAULT.name,
        help="how deepum runs beside the program (%(default)s)",
    )
    parser.add_argument(
        "--launch-queue",
        metavar="N",
        type=int,
        help="launches that the host may be ahead, instead of the machine's",
    )
    parser.add_argument(
        "--capacity-error",
        metavar="SIZE",
        help="by which the capacity that is told at the start is too high, or -SIZE",
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="processes; all cores by default")
    parser.add_argument(
        "--cluster", metavar="ADDRESS", help="of a Dask scheduler, on whose workers to simulate"
    )
    parser.add_argument(
        "--markdown",
        action="store_true",
        help="the table once more, as docs/research/workloads.md has it",
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument(
        "--captures",
        action="store_true",
        help="say what the workloads launch and allocate, instead",
    )
    arguments = parser.parse_args()
    if arguments.band and (arguments.costs or arguments.discards or arguments.fault_costs):
        parser.error("--band: has its own costs, discards and fault costs; leave those out")
    if arguments.warm_up < 0:
        parser.error(
            f"--warm-up {arguments.warm_up}: is negative; give how many steps do not count"
        )
    if arguments.launch_queue is not None and arguments.launch_queue < 1:
        parser.error(f"--launch-queue {arguments.launch_queue}: give at least 1, or leave it out")
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
        common = Point(
            "",
            chosen,
            launch_queue=arguments.launch_queue,
            steps=arguments.steps,
            synchronise=arguments.synchronise,
            pressure=arguments.pressure,
        )
        common = replace(common, warm_up=arguments.warm_up)
        capacity_error = capacity_error_bytes(arguments.capacity_error)
        one_driver = {"": Driver(arguments.costs, arguments.discards, arguments.fault_costs)}
        every: list[Comparison] = []
        for title, workloads in sets.items():
            found: dict[str, list[Comparison]] = {}
            for kind, driver in (BAND if arguments.band else one_driver).items():
                if len(sets) > 1 or kind:
                    print(f"{title} workloads" + (f", {kind} driver" if kind else ""))
                at = replace(
                    common,
                    driver=replace(
                        driver, capacity_error=capacity_error, blocking=arguments.blocking
                    ),
                    mode=mode_of(arguments.mode, driver.costs),
                )
                points = [
                    replace(at, workload=name, machine=on) for on in machines for name in workloads
                ]
                found[kind] = _simulated(points, names, arguments.jobs, arguments.cluster)
                print("\n".join(tables.summary(found[kind], names)), flush=True)
                every += found[kind]
            for name in names if arguments.band else ():
                print("\n".join(tables.band_table(found, name)), flush=True)
    except DeepumError as error:
        sys.exit(error.line)
    if arguments.markdown:
        print("\n".join(tables.markdown(every, names)))
    if arguments.json:
        document = {"version": 1, "simulations": [one.as_json() for one in every]}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    expected = len(machines) * sum(map(len, sets.values())) * (len(BAND) if arguments.band else 1)
    if len(every) < expected:
        sys.exit(
            f"deepum: error: {expected - len(every)} of {expected} simulations failed; see their "
            f"lines above"
        )


if __name__ == "__main__":
    main()
