"""The settings that hold: an option of the command goes before the environment, that before the
file of `--config`, that before the default. Sizes are bytes once read; text sizes are a number with
a unit (`8GiB`, `8G`, `512MiB`, `1.5GiB`, plain bytes).
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deepum.configuration.setting import Value
from deepum.configuration.settings import OPTIONS, SETTINGS, TUNABLES, VARIABLES
from deepum.configuration.tuning import tunable
from deepum.errors import UsageError

_TUNE = "tune"  # the table of a file that has the tunables
_OUTSIDE = {setting.name: setting for setting in (*OPTIONS, *VARIABLES)}
_INSIDE = {setting.name for setting in TUNABLES}


def from_environment(environment: Mapping[str, str], reader: str | None = None) -> dict[str, Value]:
    """Settings (of one reader) given by DEEPUM_* variables; an empty variable counts as not set.
    Raises UsageError.
    """
    given = [
        s
        for s in SETTINGS
        if environment.get(s.variable, "") != "" and (reader is None or reader in s.readers)
    ]
    return {s.name: s.parse(environment[s.variable], s.variable) for s in given}


def from_file(path: Path) -> dict[str, Value]:
    """Settings of a TOML file, by name, dashes or underscores; tunables in its table [tune]. Raises
    UsageError.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        cause = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{path}: {cause}; give a readable TOML file") from None
    tunables = table.pop(_TUNE, {})
    if not isinstance(tunables, dict):
        raise UsageError(
            f"{path}: {_TUNE}: is no table; write a line [{_TUNE}] and below it NAME = VALUE"
        )
    values: dict[str, Value] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name in _INSIDE:
            raise UsageError(
                f"{path}: {key}: is a tunable; move it to the table [{_TUNE}], below all "
                f"other settings"
            )
        if name not in _OUTSIDE:
            near = difflib.get_close_matches(name, _OUTSIDE, 1)
            step = (
                f"did you mean {near[0]}?" if near else "see docs/configuration.md for their names"
            )
            raise UsageError(f"{path}: {key}: is no setting; {step}")
        values[name] = _OUTSIDE[name].parse(_text(value, f"{path}: {key}"), f"{path}: {key}")
    for key, value in tunables.items():
        setting = tunable(key, f"{path}: [{_TUNE}]")
        values[setting.name] = setting.parse(_text(value, f"{path}: {key}"), f"{path}: {key}")
    return values


def _text(value: Any, source: str) -> str:
    if isinstance(value, (dict, list)):
        raise UsageError(f"{source}: is more than one value; give a text, a number, true or false")
    return str(value)


def resolve(
    options: Mapping[str, Value],
    environment: Mapping[str, str],
    file: Path | None = None,
    reader: str | None = None,
) -> dict[str, Value]:
    """All settings by name, defaults included; of the environment only those of one reader, if
    named. Raises UsageError.
    """
    values: dict[str, Value] = {setting.name: setting.default for setting in SETTINGS}
    if file is not None:
        values |= from_file(file)
    values |= from_environment(environment, reader)
    return values | dict(options)
