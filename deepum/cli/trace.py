"""`deepum trace`: workloads and traces in the forms of other tools."""

from __future__ import annotations

from pathlib import Path

import click

from deepum.cli.workload_options import gpu_memory_bytes, workload_options
from deepum.errors import DeepumError, UsageError
from deepum.report import perfetto
from deepum.report.timeline import observe
from deepum.simulate import policies
from deepum.simulate.workload import load
from deepum.trace import columns


@click.group("trace")
def command() -> None:
    """Bring a workload into the form of another tool."""


@command.command("export")
@click.argument("name", metavar="WORKLOAD")
@click.option("-o", "--output", metavar="FILE.json[.gz]", required=True, help="The file.")
@click.option(
    "--policy",
    metavar="P",
    default="deepum",
    show_default=True,
    help=f"One of {', '.join(policies.BY_NAME)}.",
)
@workload_options
def export(
    name: str,
    output: str,
    policy: str,
    machine: str | None,
    gpu_memory: str | None,
    launch_queue: int | None,
    steps: int | None,
    synchronise: bool,
) -> None:
    """Replay WORKLOAD under a policy and write every kernel, move, fault and decision as a file for
    Perfetto (ui.perfetto.dev).

    Kernels by stream, copies by direction and cause, launches that were held, decisions of the
    core, memory as counters.
    """
    chosen = policies.parse(policy)
    if len(chosen) != 1:
        raise UsageError(
            f"--policy {policy}: is more than one; name one of {', '.join(policies.BY_NAME)}"
        )
    workload = load(name, steps, synchronise, machine)
    timeline = observe(
        workload, machine or workload.machine, chosen[0], gpu_memory_bytes(gpu_memory), launch_queue
    )
    try:
        count = perfetto.write(timeline, Path(output))
    except OSError as error:
        raise DeepumError(f"{output}: {error.strerror}; name a file that can be written") from None
    click.echo(f"{output}: {count} events")


@command.command("convert")
@click.argument("name", metavar="WORKLOAD")
@click.option(
    "-o",
    "--output",
    metavar="FILE.parquet",
    required=True,
    help="The file; what launches do goes to FILE.work.parquet beside it.",
)
@click.option(
    "--steps",
    metavar="K",
    type=click.IntRange(1, 10000),
    help="Iterations, where the workload is one.",
)
def convert(name: str, output: str, steps: int | None) -> None:
    """Write the trace of WORKLOAD as Parquet tables, for analysis with pandas, Polars or DuckDB."""
    trace = load(name, steps, False).trace
    try:
        written = columns.write(trace, Path(output))
    except OSError as error:
        raise DeepumError(
            f"{output}: {error.strerror or error}; name a file that can be written"
        ) from None
    except ValueError as error:
        raise UsageError(f"workload {name}: {error}; record it anew with this version") from None
    for path, rows in written:
        click.echo(f"{path}: {rows} rows")
