"""`deepum plan`: what planning the steady iteration of a workload reaches."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Any

import click

from deepum.cli.output import aligned, write, write_json
from deepum.cli.workload_options import gpu_memory_bytes, time_limit_option
from deepum.core import Plan, plan_files
from deepum.errors import UsageError
from deepum.planners import Problem
from deepum.planners.catalogue import PLANNERS
from deepum.planners.core_plans import core_plan, problem_of
from deepum.planners.evaluation import Evaluation, evaluate
from deepum.planners.outline import Provenance
from deepum.planners.planner import Incumbent, Limits
from deepum.simulate import recorded as recording
from deepum.simulate.iterations import SteadyIteration, steady_iteration
from deepum.simulate.preset import preset_of
from deepum.simulate.workload import load
from deepum.sizes import size


def table(steady: SteadyIteration, head: str, found: Sequence[Evaluation | None]) -> list[str]:
    """For people: a line for each planner."""
    rows = [("", "ms/step", "of bound", "of the LP's", "in", "out", "peak", "planned in")]
    least = max((one.bound_ns or 0.0 for one in found if one), default=0.0)
    for one in found:
        if one is not None:
            rows.append(
                (
                    one.planner,
                    f"{one.ns / 1e6:.1f}",
                    f"{one.ns / steady.bound_ns:.3f}",
                    f"{one.ns / least:.3f}" if least else "-",
                    size(one.in_bytes),
                    size(one.out_bytes),
                    size(one.peak_bytes),
                    f"{one.seconds:.2f} s",
                )
            )
    return [head, *aligned(rows)]


def _head(name: str, machine: str, steady: SteadyIteration, problem: Problem) -> str:
    return (
        f"{name} on {machine}, {size(steady.link.memory_bytes)}: {problem.launches} launches, "
        f"{len(problem.iteration.items)} items, {len(problem)} gaps; lower bound of unified memory "
        f"{steady.bound_ns / 1e6:.1f} ms, computing {steady.iteration.compute_ns / 1e6:.1f} ms"
        + ("" if steady.repeats else "; its steps are not alike: the bound is of other ones too")
    )


@click.command()
@click.argument("workload")
@click.option(
    "--planner",
    type=click.Choice([planner.name for planner in PLANNERS]),
    default="search",
    show_default=True,
    help="How it is planned.",
)
@click.option("--compare", is_flag=True, help="All planners, one after the other.")
@click.option("--machine", metavar="NAME", help="The machine; the workload's own by default.")
@click.option("--gpu-memory", metavar="SIZE", help="Memory of the card, instead of the machine's.")
@time_limit_option(10.0, "each planner")
@click.option("--progress", is_flag=True, help="Say what is found while it is, to stderr.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option("--json", "json_file", metavar="FILE", help="The same figures, to this file.")
@click.option(
    "-o",
    "--output",
    metavar="PLAN",
    help="The plan, to this file; with --compare the best of all.",
)
def command(
    workload: str,
    planner: str,
    compare: bool,
    machine: str | None,
    gpu_memory: str | None,
    time_limit: float,
    progress: bool,
    seed: int,
    json_file: str | None,
    output: str | None,
) -> None:
    """Plan the steady iteration of WORKLOAD, and carry the plan out in a replay. Ctrl-C ends a
    planner with the best plan so far.

    Times are of the replay: launches and transfers alone, no faults and no costs of the driver.
    With --output the iteration is recorded by the decision core, in UM blocks, so that the plan can
    be followed: `deepum run --policy planned --tune plan=PLAN`, `deepum simulate --plan PLAN`.
    """
    memory = gpu_memory_bytes(gpu_memory)
    if machine is not None:
        preset_of(machine)  # said before the work
    loaded = load(workload, None, False, machine)
    on = machine or loaded.machine
    steady = steady_iteration(loaded, on, memory)
    problem = Problem(steady.iteration, steady.link)
    if problem.fits:
        click.echo(f"{loaded.name} on {on}: an iteration fits; nothing is to be planned")
        return
    recorded = None
    if output is not None:
        recorded, problem = problem_of(recording.recorded(workload, machine, on, memory))
    names = [one.name for one in PLANNERS] if compare else [planner]
    found = [
        evaluate(problem, name, Limits(time_limit, seed), _reporter(name) if progress else None)
        for name in names
    ]
    if any(found):
        for name, one in zip(names, found, strict=True):
            if one is None:
                click.echo(f"{name}: found no plan that can run", err=True)
        click.echo("\n".join(table(steady, _head(loaded.name, on, steady, problem), found)))
        if json_file is not None:
            write_json(json_file, _document(loaded.name, on, steady, found))
        if output is not None and recorded is not None:
            best = min((one for one in found if one), key=lambda one: one.ns)
            bounds = [one.bound_ns for one in found if one and one.bound_ns]
            made = Provenance(
                best.planner,
                best.seconds,
                steady.bound_ns,
                max(bounds, default=None),
                loaded.name,
                on,
            )
            _write(output, core_plan(recorded, problem, best.plan, made))
    else:
        raise UsageError(
            f"{loaded.name} on {on}: a launch needs more than the card holds; give more "
            f"--gpu-memory"
        )


def _write(name: str, plan: Plan) -> None:
    """The plan to that file, and a line about it."""
    data = plan_files.encode(plan)
    write(name, data)
    click.echo(
        f"{name}: {len(plan.moves)} moves at {len(plan.launches)} launches, {size(len(data))}"
    )
    click.echo(f"deepum: to see it drawn: deepum report {shlex.quote(name)}", err=True)


def _reporter(planner: str) -> Callable[[float, Incumbent], None]:
    """Says each better plan with its bound and gap."""

    def report(seconds: float, found: Incumbent) -> None:
        line = f"{planner}: {seconds:.1f} s: {found.ns / 1e6:.1f} ms"
        if found.bound_ns is not None:
            gap = 100 * max(0.0, 1 - found.bound_ns / found.ns)
            line += f", bound {found.bound_ns / 1e6:.1f} ms, gap {gap:.1f} %"
        click.echo(line, err=True)

    return report


def _document(
    workload: str, machine: str, steady: SteadyIteration, found: Sequence[Evaluation | None]
) -> dict[str, Any]:
    return {
        "workload": workload,
        "machine": machine,
        "memory_bytes": steady.link.memory_bytes,
        "bound_ns": steady.bound_ns,
        "compute_ns": steady.iteration.compute_ns,
        "planners": {one.planner: one.as_json() for one in found if one is not None},
    }
