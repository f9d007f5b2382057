"""`deepum trace`: traces in the forms of other tools."""

from __future__ import annotations

import click


@click.group("trace")
def command() -> None:
    """Bring a workload into the form of another tool."""
