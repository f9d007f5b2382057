"""`deepum simulate`: a workload on a machine under several policies, in seconds."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import click

from deepum.cli.host_options import host_of, host_options
from deepum.cli.workload_options import gpu_memory_bytes
from deepum.errors import DeepumError
from deepum.simulate import policies
from deepum.simulate.comparison import Comparison, compare
from deepum.simulate.workload import DEFAULT_STEPS, load
from deepum.statistics import size

_MOVED = {"in": "bytes_h2d", "out": "bytes_d2h"}
_ON_DISK = {"disk in": "bytes_disk_read", "disk out": "bytes_disk_written"}
_RATIOS = ("of unlimited", "over on-demand", "of bound")


def _moved(found: Comparison) -> dict[str, str]:
    return _MOVED | _ON_DISK if any(found.disk_gbps) else _MOVED


def _cells(found: Comparison, name: str) -> list[str]:
    row = found.rows[name]
    unlimited, on_demand, of_bound = found.ratios(name)
    return [
        f"{row.ns / 1e6:.1f}",
        f"{row.count('faults'):.0f}",
        *(size(row.count(counter)) for counter in _moved(found).values()),
        f"{unlimited:.3f}",
        "-" if math.isinf(on_demand) else f"{on_demand:.2f}",
        "-" if of_bound is None else f"{of_bound:.3f}",
    ]


def _host(found: Comparison) -> str:
    if not found.host_memory_bytes:
        return ""
    into, out = found.disk_gbps
    rate = f"{into:g} GB/s" if into == out else f"{into:g} GB/s from it, {out:g} to it"
    return f", host {size(found.host_memory_bytes)}" + (f", disk {rate}" if into else "")


def _table(found: Comparison, names: Sequence[str]) -> list[str]:
    fitting = [name for name in names if found.rows[name].does_not_fit is None]
    rows = [("", "ms/step", "faults", *_moved(found), *_RATIOS), *((name, *_cells(found, name)) for name in fitting)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    bounds = []
    if found.bound_ns is not None and found.moving_bound_ns is not None:
        bounds.append(f"; lower bound {found.bound_ns / 1e6:.1f} ms, without copies in advance {found.moving_bound_ns / 1e6:.1f} ms")
    head = f"{found.workload} on {found.machine}, {size(found.memory_bytes)}{_host(found)}{''.join(bounds)}"
    widest = max(widths[0], *(len(name) for name in names))
    return [
        head,
        *(f"  {row[0]:<{widest}}" + "".join(f"{cell:>{w + 2}}" for cell, w in zip(row[1:], widths[1:], strict=True)) for row in rows),
        *(f"  {name:<{widest}}  does not fit: {cause}" for name in names if (cause := found.rows[name].does_not_fit) is not None),
    ]


@click.command("simulate")
@click.argument("workload")
@click.option(
    "--machine", metavar="NAME", help="The machine (see `deepum machines`); by default a100-40gb-g10 for G10's workloads, else v100-16gb."
)
@click.option(
    "--policy", metavar="P,...", default=",".join(policies.DEFAULT), show_default=True, help=f"Policies: {', '.join(policies.BY_NAME)}."
)
@click.option("--gpu-memory", metavar="SIZE", help="Memory of the card, instead of the machine's.")
@host_options
@click.option(
    "--launch-queue", metavar="N", type=click.IntRange(1, 1 << 20), help="Launches that the host may be ahead, instead of the machine's."
)
@click.option(
    "--steps", metavar="K", type=click.IntRange(1, 10000), help=f"Iterations, where the workload is one; {DEFAULT_STEPS} by default."
)
@click.option("--synchronise", is_flag=True, help="The program waits for the GPU after each iteration, where the workload is one.")
@click.option("--json", "json_file", metavar="FILE", help="Also write all figures to this file.")
def command(
    workload: str,
    machine: str | None,
    policy: str,
    gpu_memory: str | None,
    host_memory: str | None,
    disk: str | None,
    launch_queue: int | None,
    steps: int | None,
    synchronise: bool,
    json_file: str | None,
) -> None:
    """Simulate WORKLOAD under several policies: a name of `deepum workloads`, as gpt2-xl:batch=5; a file written by `deepum run --record`
    or `deepum record`; or a folder in G10's form.

    The same decision core as in a run, on the model of the simulated GPU. A step is the mean of those after the third, without the last.
    """
    chosen = policies.parse(policy)
    loaded = load(workload, steps, synchronise, machine)
    on = machine or loaded.machine
    found = compare(loaded, on, chosen, gpu_memory_bytes(gpu_memory), launch_queue, host_of(on, host_memory, disk))
    click.echo("\n".join(_table(found, [one.name for one in chosen])))
    if json_file is not None:
        try:
            Path(json_file).write_text(json.dumps(found.as_json(), indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise DeepumError(f"{json_file}: {error.strerror}; name a file that can be written") from None
