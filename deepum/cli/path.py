"""`deepum path`: where the shim is, for LD_PRELOAD by hand."""

from __future__ import annotations

import click

from deepum import paths


@click.command("path")
def command() -> None:
    """Print the path of libdeepum.so, for `LD_PRELOAD=$(deepum path) program`."""
    click.echo(paths.shim())
