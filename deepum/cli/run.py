"""`deepum run`: run a program under the shim."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from deepum.launch import execute, plan
from deepum.settings import BY_NAME, SETTINGS, Setting, Value, resolve
from deepum.sizes import format_size

_METAVARS = {"size": "SIZE", "sizes": "SIZE[,SIZE...]", "count": "N", "path": "FILE", "text": "auto|cuda|sim|sim:MACHINE", "rules": "RULES"}

# As help shows them: what most runs need comes first.
_GROUPS = {
    "Most used": ("device", "gpu_memory", "host_memory", "stats", "profile", "record"),
    "Where and how it runs": ("sim_devices", "force", "sync", "log"),
    "What is decided": ("policy", "prediction", "eviction_order", "invalidation", "advice"),
    "Which memory": ("managed_limit", "managed_threshold", "plain_memory"),
    "Observed faults": ("faults", "fault_source", "fault_interval"),
}
_REST = "For experiments"  # all others


def grouped() -> dict[str, list[Setting]]:
    """The settings that have a flag, by the heading that help shows them under, in its order."""
    named = {heading: [BY_NAME[name] for name in names] for heading, names in _GROUPS.items()}
    shown = {setting.name for settings in named.values() for setting in settings}
    return named | {_REST: [setting for setting in SETTINGS if setting.flag and setting.name not in shown]}


class _Run(click.Command):
    """Shows its options in groups."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        records = {option.name: record for option in self.get_params(context) if (record := option.get_help_record(context)) is not None}
        for heading, settings in grouped().items():
            with formatter.section(heading):
                formatter.write_dl([records.pop(setting.name) for setting in settings])
        with formatter.section("Besides"):
            formatter.write_dl(list(records.values()))


def _help(setting: Setting) -> str:
    default = setting.default
    shown = setting.unset or (format_size(int(default)) if setting.kind == "size" and default is not None else setting.text(default))
    return f"{setting.help[0].upper()}{setting.help[1:]}.  [{setting.variable}; default: {shown}]"


def _text(_context: click.Context, _option: click.Parameter, given: bool | None) -> str | None:
    return None if given is None else str(int(given))


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    """A flag for each setting that has one."""
    for setting in reversed([setting for setting in SETTINGS if setting.flag]):
        if setting.kind == "boolean" and setting.default is None:
            both = f"{setting.option}/--no-{setting.option.removeprefix('--')}"
            option = click.option(both, setting.name, default=None, callback=_text, help=_help(setting))
        elif setting.kind == "boolean":
            option = click.option(setting.option, setting.name, is_flag=True, default=None, flag_value="1", type=str, help=_help(setting))
        else:
            metavar = "|".join(setting.choices) if setting.choices else _METAVARS[setting.kind]
            option = click.option(setting.option, setting.name, default=None, metavar=metavar, help=_help(setting))
        function = option(function)
    return function


@click.command("run", cls=_Run, context_settings={"allow_interspersed_args": False})
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
