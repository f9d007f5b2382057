"""Tunables as they are given, by `--tune NAME=VALUE` or in the table [tune] of a configuration
file, and as they are listed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from deepum.configuration.setting import Setting, Value
from deepum.configuration.settings import BY_NAME, OPTIONS, TUNABLES
from deepum.errors import UsageError

HELP = "help"  # in place of NAME=VALUE: list the tunables


def tunable(name: str, source: str) -> Setting:
    """The tunable of that name, dashes or underscores; `source` names where it was given. Raises
    UsageError.
    """
    name = name.strip().replace("-", "_")
    setting = BY_NAME.get(name)
    if setting in TUNABLES:
        return setting
    if setting in OPTIONS:
        raise UsageError(
            f"{source} {name}: is no tunable; it is the option {setting.option} of `deepum "
            f"run`, `{name}` of a file"
        )
    near = difflib.get_close_matches(name, [known.name for known in TUNABLES], 1)
    step = (
        f"did you mean {near[0]}? `deepum run --tune {HELP}` lists all"
        if near
        else f"`deepum run --tune {HELP}` lists those there are"
    )
    raise UsageError(f"{source} {name}: there is no such tunable; {step}")


def tuned(texts: Iterable[str]) -> dict[str, Value]:
    """The values of `NAME=VALUE` texts, several in one with commas between; of a name given twice
    the last. Raises UsageError.
    """
    values: dict[str, Value] = {}
    for part in (part for text in texts for part in text.split(",")):
        name, equals, value = part.partition("=")
        if not name.strip():
            raise UsageError(
                f"--tune '{part.strip()}': names no tunable; write NAME=VALUE, `deepum run "
                f"--tune {HELP}` lists the names"
            )
        setting = tunable(name, "--tune")
        if not equals:
            raise UsageError(
                f"--tune {setting.name}: has no value; write {setting.name}=VALUE with "
                f"{setting.range_text}"
            )
        values[setting.name] = setting.parse(value.strip(), f"--tune {setting.name}")
    return values


def listed() -> list[str]:
    """A line for each tunable: its name and meaning, and its default and values in brackets."""
    width = max(len(setting.name) for setting in TUNABLES)
    return [
        (
            f"{setting.name:<{width}}  {setting.help}  [default: {setting.default_text}; "
            f"{setting.range_text}]"
        )
        for setting in TUNABLES
    ]
