"""Options that tell of a simulated machine's driver, where no GPU has answered yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from deepum.errors import UsageError
from deepum.simulate.driver import BLOCKING, COSTS, DISCARDS, FAULTS
from deepum.sizes import parse_size

_OPTIONS = (
    click.option(
        "--costs",
        type=click.Choice([*COSTS]),
        help="What prefetches cost the driver beside their copies; by default the machine's.",
    ),
    click.option(
        "--discards",
        type=click.Choice([*DISCARDS]),
        help="What the driver's discards do; by default the machine's.",
    ),
    click.option(
        "--fault-costs",
        "faults",
        type=click.Choice([*FAULTS]),
        help="What paging on demand costs the driver; by default the machine's.",
    ),
    click.option(
        "--blocking",
        type=click.Choice([*BLOCKING]),
        help="Which calls block until their stream has come to them; by default the machine's.",
    ),
    click.option(
        "--capacity-error",
        metavar="SIZE",
        help=(
            "By how much the capacity that the core is told at the start is too high, such as "
            "200MiB; too low with a minus."
        ),
    ),
    click.option(
        "--free-memory/--no-free-memory",
        default=True,
        help=(
            "Whether the driver's free memory counts managed memory, so that it tells of that "
            "error."
        ),
    ),
)


def driver_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--costs, --discards, --fault-costs, --blocking, --capacity-error and --no-free-memory."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def capacity_error_bytes(text: str | None) -> int:
    """What --capacity-error says. Raises UsageError."""
    if text is None:
        return 0
    sign = -1 if text.startswith("-") else 1
    try:
        return sign * parse_size(text.removeprefix("-"))
    except ValueError as error:
        raise UsageError(f"--capacity-error: {error}") from None
