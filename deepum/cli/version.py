"""`deepum version`."""

from __future__ import annotations

import click

from deepum import __version__


@click.command("version")
def command() -> None:
    """Print the version."""
    click.echo(f"deepum {__version__}")
