"""Options of the commands that run a program: `deepum run`, `deepum compare`."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import click

from deepum.cli.groups import Group, GroupedCommand
from deepum.configuration.resolve import resolve
from deepum.configuration.setting import Setting, Value
from deepum.configuration.settings import OPTIONS, TUNABLES, VARIABLES
from deepum.configuration.tuning import HELP, listed, tuned
from deepum.errors import UsageError

_METAVARS = {
    "size": "SIZE",
    "sizes": "SIZE[,SIZE...]",
    "count": "N",
    "path": "FILE",
    "text": "auto|cuda|cpu|sim|sim:MACHINE",
    "rules": "RULES",
}

GROUPS = (
    Group(
        "Where it runs",
        "The GPU, and how much of its memory and of the host's the program may take.",
        ("device", "gpu_memory", "host_memory", "managed_limit", "force"),
    ),
    Group(
        "What is kept of a run",
        "Files that a run writes, and what it says on standard error.",
        ("stats", "profile", "record", "log"),
    ),
    Group(
        "How it runs",
        "What deepum does for the program; the defaults suit most.",
        ("policy", "remat", "sync", "faults", "plain_memory"),
    ),
    Group(
        "Everything else",
        (
            f"`deepum run --tune {HELP}` lists the tunables, for research; docs/configuration.md "
            f"has every setting and its variable."
        ),
        ("tune", "config"),
    ),
)


def groups_without(names: Collection[str]) -> tuple[Group, ...]:
    """GROUPS without the options of these names."""
    left = (
        Group(group.heading, group.sentence, tuple(n for n in group.names if n not in names))
        for group in GROUPS
    )
    return tuple(group for group in left if group.names)


class RunCommand(GroupedCommand):
    """Says of a setting that has no option where it is set."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        try:
            return super().parse_args(context, arguments)
        except click.NoSuchOption as error:
            name = error.option_name.removeprefix("--").replace("-", "_")
            if name in [setting.name for setting in TUNABLES]:
                raise UsageError(
                    f"{error.option_name}: is a tunable; write --tune {name}=VALUE"
                ) from None
            if (
                setting := next((setting for setting in VARIABLES if setting.name == name), None)
            ) is not None:
                raise UsageError(
                    f"{error.option_name}: is no option; set the environment variable "
                    f"{setting.variable}"
                ) from None
            if name in [setting.name for setting in OPTIONS]:
                raise UsageError(
                    f"{error.option_name}: is an option of `deepum run`; leave it out here"
                ) from None
            raise


def _help(setting: Setting) -> str:
    return (
        f"{setting.help[0].upper()}{setting.help[1:]}.  [{setting.variable}; default: "
        f"{setting.default_text}]"
    )


def _text(_context: click.Context, _option: click.Parameter, given: bool | None) -> str | None:
    return None if given is None else str(int(given))


def _tune(
    context: click.Context, _option: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    if HELP in given:
        click.echo("\n".join(listed()))
        context.exit()
    return given


_OTHERS = (
    click.option(
        "--tune",
        metavar="NAME=VALUE[,...]",
        multiple=True,
        is_eager=True,
        callback=_tune,
        help="Set a tunable of the decision core or the mover; may be given several times.",
    ),
    click.option(
        "--config",
        metavar="FILE",
        help=(
            "Settings by name from a TOML file, tunables in its table [tune]; environment and "
            "options go first."
        ),
    ),
    click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="COMMAND [ARGUMENT]..."),
)


def run_options(
    without: Collection[str] = (),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option for each of OPTIONS but those of these names, --tune, --config, and the command
    that is run.
    """

    def added(function: Callable[..., Any]) -> Callable[..., Any]:
        for other in reversed(_OTHERS):
            function = other(function)
        for setting in reversed(OPTIONS):
            if setting.name not in without:
                function = _option(setting)(function)
        return function

    return added


def _option(setting: Setting) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    if setting.kind == "boolean" and setting.default is None:
        both = f"{setting.option}/--no-{setting.option.removeprefix('--')}"
        return click.option(both, setting.name, default=None, callback=_text, help=_help(setting))
    if setting.kind == "boolean":
        return click.option(
            setting.option,
            setting.name,
            is_flag=True,
            default=None,
            flag_value="1",
            type=str,
            help=_help(setting),
        )
    kinds = [_METAVARS[setting.kind]] if setting.kind in _METAVARS else []
    metavar = "|".join([*kinds, *setting.choices])
    return click.option(
        setting.option, setting.name, default=None, metavar=metavar, help=_help(setting)
    )


def settings_of(
    options: Mapping[str, str | None], tune: tuple[str, ...], config: str | None
) -> dict[str, Value]:
    """All settings, as the options, the environment and the file have them. Raises UsageError."""
    given: dict[str, Value] = {
        s.name: s.parse(text, s.option)
        for s in OPTIONS
        if (text := options.get(s.name)) is not None
    }
    return resolve(given | tuned(tune), os.environ, Path(config) if config is not None else None)
