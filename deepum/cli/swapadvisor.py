"""`deepum swapadvisor`: the joint search over schedule, memory pool and swaps for a workload."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import click

from deepum.cli.output import aligned, write_json
from deepum.cli.workload_options import gpu_memory_bytes, time_limit_option
from deepum.errors import DeepumError, UsageError
from deepum.planners import Link, Problem
from deepum.planners.evaluation import Evaluation, evaluate
from deepum.planners.planner import Limits
from deepum.simulate.iterations import steady_iteration
from deepum.simulate.preset import preset_of
from deepum.simulate.sweep import cores, workers
from deepum.simulate.workload import MACHINES, load
from deepum.sizes import size
from deepum.swapadvisor import Engine, Graph, SwapPlan
from deepum.swapadvisor.genetic import Incumbent, Parameters, search
from deepum.swapadvisor.resident import arena_bytes
from deepum.swapadvisor.starts import default
from deepum.swapadvisor.traced import graph_of, iteration_of

_PROGRAM = ".pt2"
_ARENA_SECONDS = 1.0


@dataclass(frozen=True)
class _Planned:
    """What is told of: the default's plan, the search's, and what `deepum plan` reaches in the
    program's order and in the search's.
    """

    default: SwapPlan | None
    found: SwapPlan
    incumbent: Incumbent
    linear: tuple[Evaluation | None, Evaluation | None] | None
    arenas: dict[str, int]  # bytes for what is resident, by plan


def _graph(workload: str, machine: str | None, memory: int | None) -> tuple[str, str, Graph, Link]:
    """The workload's name, the machine's, the graph and the card."""
    if workload.endswith(_PROGRAM):
        try:
            from deepum.swapadvisor.exported import Costs, load_program
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise DeepumError(
                f"program {workload}: needs PyTorch; install it with `pip install deepum[torch]`"
            ) from None
        on = machine or MACHINES[-1]
        figures = preset_of(on)
        link = Link(
            memory or int(figures.memory_bytes), float(figures.h2d_gbps), float(figures.d2h_gbps)
        )
        costs = Costs(
            float(figures.fp32_gflops * figures.fp32_sustained),
            float(figures.tensor_gflops * figures.tensor_sustained),
            float(figures.memory_gbps * figures.memory_sustained),
        )
        return workload, on, load_program(workload, costs).graph, link
    if machine is not None:
        preset_of(machine)  # said before the work
    loaded = load(workload, None, False, machine)
    on = machine or loaded.machine
    steady = steady_iteration(loaded, on, memory)
    return loaded.name, on, graph_of(steady.iteration), steady.link


def _linear(
    plan: SwapPlan, graph: Graph, link: Link, seconds: float, seed: int
) -> tuple[Evaluation | None, Evaluation | None]:
    """What deepum's own planner makes of the program's order and of the plan's."""

    def one(schedule: Any) -> Evaluation | None:
        problem = Problem(iteration_of(graph, schedule), link)
        return evaluate(problem, "search", Limits(seconds, seed))

    return one(graph.program), one(plan.schedule)


@contextmanager
def _executor(count: int, cluster: str | None) -> Iterator[Any]:
    if count <= 1 and cluster is None:
        yield None
    else:
        with workers(count, cluster) as executor:
            yield executor


def _search(
    engine: Engine, parameters: Parameters, count: int, cluster: str | None
) -> Incumbent | None:
    """Tells each better incumbent on standard error."""
    last = None
    with _executor(count, cluster) as executor:
        for found in search(engine, parameters, executor, count):
            if last is None or found.best.ns < last.best.ns:
                click.echo(
                    f"generation {found.generation}: {found.best.ns / 1e6:.2f} ms after "
                    f"{found.evaluations} plans, {found.seconds:.1f} s",
                    err=True,
                )
            last = found
    return last


def table(engine: Engine, planned: _Planned, head: str) -> list[str]:
    """For people: a line for each way."""
    graph = engine.graph
    rows: list[tuple[str, ...]] = [
        ("", "ms/step", "of unlimited", "in", "out", "classes", "pool", "as an arena")
    ]

    def add(name: str, ns: float, in_bytes: int, out_bytes: int, *pool: str) -> None:
        part = f"{graph.compute_ns / ns:.1%}"
        cells = (*pool, "", "", "")[:3]
        rows.append((name, f"{ns / 1e6:.1f}", part, size(in_bytes), size(out_bytes), *cells))

    for name, plan in (("default", planned.default), ("swapadvisor", planned.found)):
        if plan is not None:
            outcome = plan.outcome
            classes = str(len(plan.allocation.counts))
            pool = classes, size(engine.sizes.used_bytes(plan.allocation))
            add(
                name,
                outcome.ns,
                outcome.in_bytes,
                outcome.out_bytes,
                *pool,
                size(planned.arenas[name]),
            )
    add("unlimited memory", graph.compute_ns, 0, 0)
    names = ("plan, program's order", "plan, swapadvisor's order")
    for name, one in zip(names, planned.linear or (), strict=False):
        if one is not None:
            add(name, one.ns, one.in_bytes, one.out_bytes)
    lines = [head, *aligned(rows)]
    if (best := _best(planned)) is not None:
        lines.append(f"best order for `deepum plan`: {best}")
    return lines


def _best(planned: _Planned) -> str | None:
    """Which of both orders deepum's planner does better with."""
    if planned.linear is None or None in planned.linear:
        return None
    program, reordered = (one.ns for one in planned.linear if one is not None)
    if reordered < program:
        return f"swapadvisor's, by {1 - reordered / program:.1%}"
    return "the program's" if program < reordered else "either"


@click.command()
@click.argument("workload")
@click.option("--machine", metavar="NAME", help="The machine; the workload's own by default.")
@click.option("--gpu-memory", metavar="SIZE", help="Memory of the card, instead of the machine's.")
@time_limit_option(60.0, "the search")
@click.option(
    "--generations", metavar="N", type=click.IntRange(0), help="Ends the search after so many."
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option(
    "--workers",
    "count",
    metavar="N",
    type=click.IntRange(1, 4096),
    help="Processes; one for each core by default.",
)
@click.option("--cluster", metavar="ADDRESS", help="Workers of a Dask scheduler, tcp://HOST:PORT.")
@click.option(
    "--plan",
    "plan_seconds",
    metavar="SECONDS",
    type=click.FloatRange(0.0, 86400.0),
    default=0.0,
    help="Plan both orders by `deepum plan --planner search` as well, each for so long.",
)
@click.option("-o", "--output", metavar="FILE", help="The plan, as JSON, to this file.")
@click.option("--json", "json_file", metavar="FILE", help="The same figures, to this file.")
def command(
    workload: str,
    machine: str | None,
    gpu_memory: str | None,
    time_limit: float,
    generations: int | None,
    seed: int,
    count: int | None,
    cluster: str | None,
    plan_seconds: float,
    output: str | None,
    json_file: str | None,
) -> None:
    """Search a schedule and a memory pool for WORKLOAD whose swaps take the least time.

    WORKLOAD is one of `deepum workloads`, a recorded run, or a program of torch.export (FILE.pt2).
    Times are of a simulated engine with a stream each to compute, to swap in and to swap out.
    """
    name, on, graph, link = _graph(workload, machine, gpu_memory_bytes(gpu_memory))
    engine = Engine(graph, link)
    parameters = Parameters(seconds=time_limit, generations=generations, seed=seed)
    found = _search(engine, parameters, count or cores(), cluster)
    plan = engine.plan(found.best.schedule, found.best.allocation) if found else None
    if found is None or plan is None:
        raise UsageError(
            f"{name} on {on}: in no pool every operator can run; give --gpu-memory "
            f"{size(engine.sizes.leanest()[1])} at least"
        )
    start = default(engine)
    plain = engine.plan(graph.program, start[0]) if start else None
    planned = _Planned(
        plain,
        plan,
        found,
        _linear(plan, graph, link, plan_seconds, seed) if plan_seconds else None,
        {
            name: arena_bytes(graph, one, _ARENA_SECONDS, seed)
            for name, one in (("default", plain), ("swapadvisor", plan))
            if one is not None
        },
    )
    head = (
        f"{name} on {on}, {size(link.memory_bytes)}: {len(graph.operators)} operators, "
        f"{len(graph.tensors)} tensors of {len(engine.sizes.sizes)} sizes, peak "
        f"{size(graph.peak_bytes(graph.program))}; {found.evaluations} plans in "
        f"{found.seconds:.1f} s"
    )
    click.echo("\n".join(table(engine, planned, head)))
    if output is not None:
        write_json(output, _plan_document(engine, plan))
    if json_file is not None:
        write_json(json_file, _document(name, on, engine, planned))


def _plan_document(engine: Engine, plan: SwapPlan) -> dict[str, Any]:
    sizes = engine.sizes
    return {
        "classes": [
            {"bytes": int(of), "objects": objects}
            for of, objects in zip(
                sizes.class_bytes(plan.allocation.classes), plan.allocation.counts, strict=True
            )
        ],
        "class_of_size": {
            str(of): one
            for of, one in zip(sizes.sizes.tolist(), plan.allocation.classes, strict=True)
        },
        "schedule": [engine.graph.operators[one].name for one in plan.schedule.tolist()],
        "moves": [asdict(move) | {"kind": move.kind.name.lower()} for move in plan.moves],
    }


def _outcome(
    engine: Engine, planned: _Planned, name: str, plan: SwapPlan | None
) -> dict[str, Any] | None:
    """pool_bytes: of all objects; arena_bytes: what an arena needs for what is in them."""
    if plan is None:
        return None
    pool = engine.sizes.used_bytes(plan.allocation)
    return asdict(plan.outcome) | {"pool_bytes": pool, "arena_bytes": planned.arenas[name]}


def _document(name: str, on: str, engine: Engine, planned: _Planned) -> dict[str, Any]:
    linear = planned.linear or (None, None)
    return {
        "workload": name,
        "machine": on,
        "memory_bytes": engine.link.memory_bytes,
        "peak_bytes": engine.graph.peak_bytes(engine.graph.program),
        "compute_ns": engine.graph.compute_ns,
        "default": _outcome(engine, planned, "default", planned.default),
        "swapadvisor": _outcome(engine, planned, "swapadvisor", planned.found),
        "generations": planned.incumbent.generation,
        "evaluations": planned.incumbent.evaluations,
        "plan": {
            order: one.as_json() if one else None
            for order, one in zip(("program", "swapadvisor"), linear, strict=True)
        },
    }
