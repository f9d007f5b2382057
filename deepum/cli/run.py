"""`deepum run`: run a program under the shim."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from deepum.launch import execute, plan
from deepum.settings import SETTINGS, Setting, Value, resolve
from deepum.sizes import format_size

_METAVARS = {"size": "SIZE", "sizes": "SIZE[,SIZE...]", "count": "N", "path": "FILE", "text": "auto|cuda|sim|sim:MACHINE", "rules": "RULES"}


def _help(setting: Setting) -> str:
    default = setting.default
    shown = setting.unset or (format_size(int(default)) if setting.kind == "size" and default is not None else setting.text(default))
    return f"{setting.help[0].upper()}{setting.help[1:]}.  [{setting.variable}; default: {shown}]"


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    """A flag for each setting that has one."""
    for setting in reversed([setting for setting in SETTINGS if setting.flag]):
        if setting.kind == "boolean":
            option = click.option(setting.option, setting.name, is_flag=True, default=None, flag_value="1", type=str, help=_help(setting))
        else:
            metavar = "|".join(setting.choices) if setting.choices else _METAVARS[setting.kind]
            option = click.option(setting.option, setting.name, default=None, metavar=metavar, help=_help(setting))
        function = option(function)
    return function


@click.command("run", context_settings={"allow_interspersed_args": False})
@_options
@click.option("--config", "config", default=None, metavar="FILE", help="Settings by name from a TOML file; environment and flags go first.")
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="COMMAND [ARGUMENT]...")
def command(program: tuple[str, ...], config: str | None, **flags: str | None) -> int:
    """Run COMMAND with its CUDA memory as unified memory, prefetched by correlation.

    Its standard streams, exit code and signals are its own; what deepum has to say goes to standard error.
    """
    given: dict[str, Value] = {s.name: s.parse(text, s.option) for s in SETTINGS if s.flag and (text := flags[s.name]) is not None}
    values = resolve(given, os.environ, Path(config) if config is not None else None)
    return execute(plan(program, values, os.environ))
