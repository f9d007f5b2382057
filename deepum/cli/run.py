"""`deepum run`: run a program under the shim."""

from __future__ import annotations

import os

import click

from deepum.cli.run_options import GROUPS, RunCommand, run_options, settings_of
from deepum.launcher.execute import execute
from deepum.launcher.launch import plan


@click.command(
    "run", cls=RunCommand, groups=GROUPS, context_settings={"allow_interspersed_args": False}
)
@run_options()
def command(
    program: tuple[str, ...], config: str | None, tune: tuple[str, ...], **options: str | None
) -> int:
    """Run COMMAND with its CUDA memory as unified memory, prefetched by correlation.

    Its standard streams, exit code and signals are its own; what deepum has to say goes to standard
    error.
    """
    return execute(plan(program, settings_of(options, tune, config), os.environ))
