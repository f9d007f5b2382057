"""Options that tell of a simulated machine's driver, where no GPU has answered yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from deepum.simulate.driver import COSTS, DISCARDS, FAULTS

_OPTIONS = (
    click.option(
        "--costs", type=click.Choice([*COSTS]), help="What prefetches cost the driver beside their copies; by default the machine's."
    ),
    click.option("--discards", type=click.Choice([*DISCARDS]), help="What the driver's discards do; by default the machine's."),
    click.option(
        "--fault-costs", "faults", type=click.Choice([*FAULTS]), help="What paging on demand costs the driver; by default the machine's."
    ),
)


def driver_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--costs, --discards and --fault-costs."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
