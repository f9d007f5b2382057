"""`deepum report`: one page with charts of runs, traces and simulations."""

from __future__ import annotations

import contextlib
from typing import Any

import click

from deepum.cli.output import write
from deepum.cli.workload_options import gpu_memory_bytes, workload_options
from deepum.errors import UsageError
from deepum.report import inputs
from deepum.report.page import library, picture
from deepum.report.timeline import Timeline, observe
from deepum.report.write import main_chart, report
from deepum.simulate import policies
from deepum.simulate.comparison import compare
from deepum.simulate.policy_run import DoesNotFitError
from deepum.sizes import size

_TIMELINES = ("on-demand", "deepum")
_PICTURES = (".png", ".svg")


def _write(name: str, data: bytes) -> None:
    write(name, data)
    click.echo(f"{name}: {size(len(data))}")


@click.command("report")
@click.argument("names", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "-o",
    "--output",
    metavar="FILE.html",
    default="report.html",
    show_default=True,
    help="The page.",
)
@click.option("--image", metavar="FILE.png|FILE.svg", help="Also the main chart, as a picture.")
@click.option(
    "--policy",
    metavar="P,...",
    default=",".join(policies.DEFAULT),
    show_default=True,
    help="Policies under which workloads are replayed.",
)
@click.option(
    "--timeline",
    metavar="P,...",
    default=",".join(_TIMELINES),
    show_default=True,
    help="Policies of which memory, link and kernels are drawn.",
)
@workload_options
def command(
    names: tuple[str, ...],
    output: str,
    image: str | None,
    policy: str,
    timeline: str,
    machine: str | None,
    gpu_memory: str | None,
    launch_queue: int | None,
    steps: int | None,
    synchronise: bool,
) -> None:
    """Draw what runs and simulations came to, on one page that needs nothing else.

    INPUT is what `deepum simulate --json` or `deepum run --stats` wrote; a plan, of `deepum plan
    --output` or `deepum run --tune plan=FILE`, which is replayed; or a workload, which is too: a
    file written by `deepum run --record`, or a folder in G10's form.
    """
    chosen, drawn = policies.parse(policy), policies.parse(timeline)
    if image is not None and not image.endswith(_PICTURES):
        raise UsageError(f"--image {image}: is neither .png nor .svg; name the file so")
    memory = gpu_memory_bytes(gpu_memory)
    library()  # said before the work, not after it
    found = inputs.read(names, steps, synchronise, machine)
    simulated: list[tuple[dict[str, Any], list[Timeline]]] = []
    for workload in found.workloads:
        on = machine or workload.machine
        compared = compare(workload, on, chosen, memory, launch_queue).as_json()
        timelines: list[Timeline] = []
        for one in drawn:
            with contextlib.suppress(DoesNotFitError):  # the table says it
                timelines.append(
                    observe(
                        workload,
                        on,
                        one,
                        memory,
                        launch_queue,
                        timelines[0].launches if timelines else None,
                    )
                )
        simulated.append((compared, timelines))
    if image is not None:
        _write(
            image, picture(main_chart(found, [compared for compared, _ in simulated]), image[-3:])
        )
    _write(output, report(found, simulated).html().encode())
