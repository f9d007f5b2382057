"""`deepum machines`: the presets of the simulated GPU."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from deepum.machines import Machine, machines
from deepum.sizes import size


def _lines(machine: Machine) -> list[str]:
    link = f"{machine.h2d_gbps:g} GB/s to the GPU, {machine.d2h_gbps:g} back"
    batch = f"{machine.fault_batch_ns / 1000:g} us + {machine.fault_ns_per_byte * 1.024:.3g} us/KiB"
    speed = (
        f"{machine.fp32_gflops / 1000:g} TFLOP/s, {machine.tensor_gflops / 1000:g} with matrix "
        f"units"
    )
    sustained = (
        f"{machine.memory_sustained:.0%}, {machine.fp32_sustained:.0%} and "
        f"{machine.tensor_sustained:.0%}"
    )
    capability = f"presents compute capability {machine.presented_major}.{machine.presented_minor}"
    eviction = f"{machine.eviction_ns_per_block / 1000:g} us a UM block"
    host = []
    if machine.host_memory_bytes:
        disk = (
            (
                f"{machine.disk_read_gbps:g} GB/s from the disk behind it, "
                f"{machine.disk_write_gbps:g} to it"
            )
            if machine.disk_read_gbps
            else "no disk"
        )
        if machine.disk_read_gbps and machine.host_keeps:
            disk += ", for what comes when the host is full"
        host = [f"    host memory: {size(machine.host_memory_bytes)}; {disk}"]
    return [
        f"{machine.name}  {machine.description}",
        (
            f"    {size(machine.memory_bytes)} at {machine.memory_gbps:g} GB/s; {speed}; at best "
            f"{sustained} of these"
        ),
        f"    {capability}; link: {link}; fault batch: {batch}; eviction by the driver: {eviction}",
        *host,
    ]


@click.command("machines")
@click.option("--json", "as_json", is_flag=True, help="All figures, as JSON.")
def command(as_json: bool) -> None:
    """List the machines of the simulated GPU, for `--device sim:MACHINE`. Sources of the figures:
    docs/um-model.md.
    """
    if as_json:
        click.echo(json.dumps([asdict(machine) for machine in machines()], indent=2))
        return
    for machine in machines():
        click.echo("\n".join(_lines(machine)))
