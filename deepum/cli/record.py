"""`deepum record`: write down what a named workload launches, without a GPU."""

from __future__ import annotations

from pathlib import Path

import click

from deepum import workloads
from deepum.errors import DeepumError
from deepum.sizes import size


@click.command("record")
@click.option(
    "--model",
    required=True,
    metavar="NAME[:number=value,...]",
    help="The workload; `deepum workloads` lists them.",
)
@click.option(
    "--steps",
    metavar="K",
    type=click.IntRange(1, 10000),
    default=7,
    show_default=True,
    help="Steps that are written down.",
)
@click.option("--synchronise", is_flag=True, help="The program waits for the GPU after each step.")
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Of the rows that lookups in tables pick.",
)
@click.argument("out", metavar="FILE")
def command(model: str, steps: int, synchronise: bool, seed: int, out: str) -> None:
    """Capture a workload of PyTorch as a trace, FILE and FILE.work, on a machine with or without a
    GPU.

    No memory is needed for its tensors. `deepum simulate FILE` says what it takes under which
    policy.
    """
    from deepum.capture.record import capture

    request = workloads.parse(model)
    captured = capture(request, steps, synchronise, seed=seed)
    try:
        captured.trace.save(Path(out))
    except OSError as error:
        raise DeepumError(f"{out}: {error.strerror}; name a file that can be written") from None
    click.echo(
        f"{request}: {captured.launches} launches a step, {captured.flops / 1e12:.2f} TFLOP, "
        f"{size(captured.peak_bytes)} allocated at most, {size(captured.reserved_bytes)} reserved"
    )
