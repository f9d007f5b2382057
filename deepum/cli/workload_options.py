"""Options of the commands that replay a workload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from deepum.errors import UsageError
from deepum.simulate.workload import DEFAULT_STEPS
from deepum.sizes import parse_size

_OPTIONS = (
    click.option(
        "--machine",
        metavar="NAME",
        help=(
            "The machine (see `deepum machines`); by default a100-40gb-g10 for G10's workloads, "
            "else v100-16gb."
        ),
    ),
    click.option(
        "--gpu-memory", metavar="SIZE", help="Memory of the card, instead of the machine's."
    ),
    click.option(
        "--launch-queue",
        metavar="N",
        type=click.IntRange(1, 1 << 20),
        help="Launches that the host may be ahead, instead of the machine's.",
    ),
    click.option(
        "--steps",
        metavar="K",
        type=click.IntRange(1, 10000),
        help=f"Iterations, where the workload is one; {DEFAULT_STEPS} by default.",
    ),
    click.option(
        "--synchronise",
        is_flag=True,
        help="The program waits for the GPU after each iteration, where the workload is one.",
    ),
)


def workload_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--machine, --gpu-memory, --launch-queue, --steps and --synchronise."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def time_limit_option(default: float, what: str) -> Callable[..., Any]:
    """--time-limit, seconds. what: whose it is, for the help text."""
    return click.option(
        "--time-limit",
        metavar="SECONDS",
        type=click.FloatRange(0.0, 86400.0),
        default=default,
        show_default=True,
        help=f"What {what} may take.",
    )


def gpu_memory_bytes(text: str | None) -> int | None:
    """What --gpu-memory says. Raises UsageError."""
    if text is None:
        return None
    try:
        memory = parse_size(text)
    except ValueError as error:
        raise UsageError(f"--gpu-memory: {error}") from None
    if not 64 << 20 <= memory <= 1 << 44:
        raise UsageError(f"--gpu-memory: '{text}' is out of range; give 64MiB to 16TiB")
    return memory
