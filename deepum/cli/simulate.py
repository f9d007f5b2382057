"""`deepum simulate`: workloads on machines under several policies, in seconds."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import replace

import click

from deepum.cli.driver_options import capacity_error_bytes, driver_options
from deepum.cli.groups import Group, GroupedCommand
from deepum.cli.host_options import host_of, host_options
from deepum.cli.output import aligned, write_json
from deepum.cli.workload_options import gpu_memory_bytes
from deepum.simulate import policies
from deepum.simulate.comparison import Comparison, means
from deepum.simulate.driver import Driver
from deepum.simulate.given_plans import following
from deepum.simulate.mode import DEFAULT, MODES, mode_of
from deepum.simulate.point import Point, simulate
from deepum.simulate.preset import preset_of
from deepum.simulate.steps import WARM_UP, repeated
from deepum.simulate.sweep import Failure, sweep
from deepum.simulate.workload import DEFAULT_STEPS, MACHINES
from deepum.sizes import size

_MOVED = {"in": "bytes_h2d", "out": "bytes_d2h"}
_ON_DISK = {"disk in": "bytes_disk_read", "disk out": "bytes_disk_written"}
_RATIOS = ("of unlimited", "over on-demand", "of bound", "of bound (UM)")
_LINEAR = "of bound (LP)"


def _moved(found: Comparison) -> dict[str, str]:
    return _MOVED | _ON_DISK if any(found.disk_gbps) else _MOVED


def _ratio(value: float | None, digits: int) -> str:
    return f"{value:.{digits}f}" if value is not None and math.isfinite(value) else "-"


def _cells(found: Comparison, name: str) -> list[str]:
    row = found.rows[name]
    unlimited, on_demand, of_bound = found.ratios(name)
    return [
        f"{row.ns / 1e6:.1f}",
        f"{row.count('faults'):.0f}",
        *(size(row.count(counter)) for counter in _moved(found).values()),
        _ratio(unlimited, 3),
        _ratio(on_demand, 2),
        _ratio(of_bound, 3),
        _ratio(found.of_kept_bound(name), 3),
        *([_ratio(found.of_linear_bound(name), 3)] if found.linear_bound_ns else []),
    ]


def _host(found: Comparison) -> str:
    if not found.host_memory_bytes:
        return ""
    into, out = found.disk_gbps
    rate = f"{into:g} GB/s" if into == out else f"{into:g} GB/s from it, {out:g} to it"
    return f", host {size(found.host_memory_bytes)}" + (f", disk {rate}" if into else "")


def _bounds(found: Comparison) -> str:
    ahead, moving = (
        (found.bound_ns, found.kept_bound_ns),
        (found.moving_bound_ns, found.kept_moving_bound_ns),
    )
    texts = [
        [f"{bound / 1e6:.1f} ms" for bound in both if bound is not None] for both in (ahead, moving)
    ]
    if any(len(both) != 2 for both in texts):
        return ""
    (first, kept), (moving_first, moving_kept) = texts
    return (
        f"; lower bound {first}, of unified memory {kept}; without copies in advance "
        f"{moving_first}, {moving_kept}"
        + (
            f"; with recomputation {found.recomputed_bound_ns / 1e6:.1f} ms"
            if found.recomputed_bound_ns
            else ""
        )
        + (f"; of plans {found.linear_bound_ns / 1e6:.1f} ms" if found.linear_bound_ns else "")
    )


def _table(found: Comparison, names: Sequence[str]) -> list[str]:
    fitting = [name for name in names if found.rows[name].does_not_fit is None]
    rows = [
        (
            *("", "ms/step", "faults", *_moved(found), *_RATIOS),
            *([_LINEAR] if found.linear_bound_ns else []),
        ),
        *((name, *_cells(found, name)) for name in fitting),
    ]
    head = (
        f"{found.workload} on {found.machine}, {size(found.memory_bytes)}{_host(found)}, "
        f"{found.mode.name}{_bounds(found)}"
    )
    widest = max(len(name) for name in names)
    return [
        head,
        *aligned(rows, widest),
        *([f"  {note}"] if (note := repeated(found.repetitions)) else []),
        *(
            f"  {name:<{widest}}  does not fit: {cause}"
            for name in names
            if (cause := found.rows[name].does_not_fit) is not None
        ),
    ]


def _mean(found: Sequence[Comparison], name: str) -> str:
    mean = means(found, name)
    if mean is None:
        nowhere = all(one.rows[name].does_not_fit is not None for one in found)
        return f"{name}: fits nowhere" if nowhere else f"{name}: fits where on-demand does not"
    text = f"{name}: {mean.over_on_demand:.2f} over on-demand" + (
        "" if mean.of_bound is None else f", {mean.of_bound:.3f} of bound"
    )
    text += "" if mean.of_kept_bound is None else f", {mean.of_kept_bound:.3f} of bound (UM)"
    return text if mean.count == len(found) else f"{text} (of the {mean.count} that fit)"


def _machines(given: str | None) -> list[str]:
    """Those named; none: each workload's own. Raises UsageError."""
    machines = [name.strip() for name in given.split(",")] if given is not None else []
    for on in machines:
        preset_of(on)  # said once, and before the work
    return list(dict.fromkeys(machines))


GROUPS = (
    Group(
        "What is simulated",
        "The policies, and how each workload's iterations are run and counted.",
        ("policy", "mode", "steps", "warm_up", "synchronise", "linear_bound", "plan"),
    ),
    Group(
        "The machine",
        "Which one, and what it has instead of its own figures.",
        ("machine", "gpu_memory", "host_memory", "disk", "launch_queue"),
    ),
    Group(
        "Its driver",
        "What drivers differ in; `deepum machines --json` has the machine's own figures.",
        ("costs", "discards", "faults", "blocking", "capacity_error", "free_memory"),
    ),
    Group(
        "The work and its results",
        "Where it is done, and where the figures go.",
        ("jobs", "cluster", "json_file"),
    ),
)


@click.command("simulate", cls=GroupedCommand, groups=GROUPS)
@click.argument("workloads", metavar="WORKLOAD...", nargs=-1, required=True)
@click.option(
    "--machine",
    metavar="NAME,...",
    help=(
        "Machines (see `deepum machines`); by default a100-40gb-g10 for G10's workloads, else "
        "v100-16gb."
    ),
)
@click.option(
    "--policy",
    metavar="P,...",
    default=",".join(policies.DEFAULT),
    show_default=True,
    help=f"Policies: {', '.join(policies.BY_NAME)}.",
)
@click.option("--gpu-memory", metavar="SIZE", help="Memory of the card, instead of the machine's.")
@host_options
@driver_options
@click.option(
    "--mode",
    type=click.Choice([*MODES]),
    default=DEFAULT.name,
    show_default=True,
    help=(
        "How deepum runs beside the program: launches wait for decisions, for nothing, or for "
        "their moves in stream order."
    ),
)
@click.option(
    "--launch-queue",
    metavar="N",
    type=click.IntRange(1, 1 << 20),
    help="Launches that the host may be ahead, instead of the machine's.",
)
@click.option(
    "--steps",
    metavar="K",
    type=click.IntRange(1, 10000),
    help=f"Iterations, where the workload is one; {DEFAULT_STEPS} by default.",
)
@click.option(
    "--warm-up",
    metavar="N",
    type=click.IntRange(0, 10000),
    default=WARM_UP,
    show_default=True,
    help="Iterations that do not count.",
)
@click.option(
    "--synchronise",
    is_flag=True,
    help="The program waits for the GPU after each iteration, where the workload is one.",
)
@click.option(
    "--linear-bound",
    is_flag=True,
    help="Also the bound of all plans of an iteration, by linear programming; takes seconds.",
)
@click.option(
    "--plan",
    metavar="PLAN",
    help="A plan that `planned` follows from the start; what `deepum plan --output` wrote.",
)
@click.option("--json", "json_file", metavar="FILE", help="Also write all figures to this file.")
@click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(1, 1024),
    help="Processes, if there are several simulations; all cores by default.",
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Simulate on the workers of this Dask scheduler, as tcp://HOST:8786.",
)
def command(
    workloads: tuple[str, ...],
    machine: str | None,
    policy: str,
    gpu_memory: str | None,
    host_memory: str | None,
    disk: str | None,
    costs: str | None,
    discards: str | None,
    faults: str | None,
    blocking: str | None,
    capacity_error: str | None,
    free_memory: bool,
    mode: str,
    launch_queue: int | None,
    steps: int | None,
    warm_up: int,
    synchronise: bool,
    linear_bound: bool,
    plan: str | None,
    json_file: str | None,
    jobs: int | None,
    cluster: str | None,
) -> None:
    """Simulate each WORKLOAD on each machine under several policies: a name of `deepum workloads`,
    as gpt2-xl:batch=5; a file written by `deepum run --record` or `deepum record`; or a folder in
    G10's form.

    The same decision core as in a run, on the model of the simulated GPU. A step is the mean of
    those after the warm-up, without the last.
    """
    chosen = following(policies.parse(policy), plan)
    machines = _machines(machine)
    host = host_of(machines or MACHINES, host_memory, disk)
    common = Point(
        "",
        chosen,
        None,
        gpu_memory_bytes(gpu_memory),
        launch_queue,
        steps,
        synchronise,
        host=host,
        warm_up=warm_up,
        linear_bound=linear_bound,
    )
    driver = Driver(
        costs, discards, faults, capacity_error_bytes(capacity_error), free_memory, blocking
    )
    common = replace(common, driver=driver, mode=mode_of(mode, costs))
    named: list[str | None] = [*machines] or [None]
    points = [
        replace(common, workload=name, machine=on)
        for on in named
        for name in dict.fromkeys(workloads)
    ]
    names = [one.name for one in chosen]
    found: list[Comparison] = []
    failures: list[Failure] = []
    for done in sweep(simulate, points, jobs, cluster, "simulating"):
        if isinstance(done.result, Failure):
            failures.append(done.result)
            click.echo(done.result.line, err=True)
        else:
            click.echo("\n".join([*([""] if found else []), *_table(done.result, names)]))
            found.append(done.result)
    if len(found) > 1:
        click.echo(
            "\n".join(
                [
                    "",
                    f"geometric means of {len(found)}:",
                    *(f"  {_mean(found, name)}" for name in names),
                ]
            )
        )
    if json_file is not None and found:
        documents = [one.as_json() for one in found]
        write_json(
            json_file,
            documents[0] if len(points) == 1 else {"version": 1, "simulations": documents},
        )
        click.echo(f"deepum: to see it drawn: deepum report {shlex.quote(json_file)}", err=True)
    if failures:
        raise SystemExit(failures[0].exit_code)
