"""What a session's core starts from and leaves behind: its settings and its profile."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from deepum.configuration.setting import Value
from deepum.configuration.settings import BY_NAME
from deepum.core import Core, CoreSettings
from deepum.errors import UsageError


def core_settings(values: Mapping[str, Value]) -> CoreSettings:
    """The core's settings: ours of the same name, else its own defaults; choices are numbered as in
    native/core/core.h.
    """
    numbers: dict[str, int] = {}
    for field in fields(CoreSettings):
        if (setting := BY_NAME.get(field.name)) is not None:
            value = values[field.name]
            numbers[field.name] = (
                setting.choices.index(str(value)) if setting.kind == "choice" else int(value or 0)
            )
    return CoreSettings.default(**numbers)


def make_core(values: Mapping[str, Value]) -> Core:
    """A core with these settings. Raises UsageError."""
    try:
        return Core(core_settings(values))
    except ValueError as error:
        raise UsageError(f"settings: {error}; see docs/configuration.md for their ranges") from None


def load_profile(path: Path, values: Mapping[str, Value], core: Core | None = None) -> bytes:
    """Loads a profile into the core (without one, into one made for the check) and returns its
    bytes. Raises UsageError.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe or a device may never end
            raise UsageError(
                f"profile {path}: is not a file; delete it to start anew, or name another"
            )
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"profile {path}: {error.strerror}; name a file that can be read"
        ) from None
    try:
        (core or make_core(values)).load_tables(data)
    except ValueError as error:
        raise UsageError(
            f"profile {path}: {error}; delete it to start anew, or name another"
        ) from None
    return data


def save_profile(path: Path, core: Core) -> None:
    """Writes what the core has learned: the whole file or nothing of it. Raises OSError."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.{id(core):x}.part")
    try:
        unfinished.write_bytes(core.save_tables())
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
