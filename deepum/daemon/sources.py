"""What a session's core starts from and leaves behind: its settings and its profile."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from deepum._core import lib
from deepum.configuration.setting import Value
from deepum.configuration.settings import BY_NAME
from deepum.core import Core, CoreSettings, Plan, plan_files
from deepum.errors import UsageError

_POLICIES: dict[str, int] = {
    "on-demand": lib.DEEPUM_POLICY_ON_DEMAND,
    "correlation": lib.DEEPUM_POLICY_CORRELATION,
    "planned": lib.DEEPUM_POLICY_CORRELATION,
}


def core_settings(values: Mapping[str, Value]) -> CoreSettings:
    """The core's settings: ours of the same name, else its own defaults; choices are numbered as in
    native/core/core.h, and the policy that plans is correlation to a core.
    """
    numbers: dict[str, int] = {}
    for field in fields(CoreSettings):
        if field.name == "policy":
            numbers["policy"] = _POLICIES[str(values["policy"])]
        elif (setting := BY_NAME.get(field.name)) is not None:
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
    data = _read(path, "profile")
    try:
        (core or make_core(values)).load_tables(data)
    except ValueError as error:
        raise UsageError(
            f"profile {path}: {error}; delete it to start anew, or name another"
        ) from None
    return data


def load_plan(path: Path, values: Mapping[str, Value], core: Core | None = None) -> Plan:
    """Loads a plan into the core (without one, into one made for the check) and returns it. Raises
    UsageError.
    """
    try:
        plan = plan_files.decode(_read(path, "plan"))
        (core or make_core(values)).follow_plan(plan.launches, plan.moves)
    except ValueError as error:
        raise UsageError(
            f"plan {path}: {error}; delete it to start anew, or name another"
        ) from None
    return plan


def _read(path: Path, what: str) -> bytes:
    """Raises UsageError."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe or a device may never end
            raise UsageError(
                f"{what} {path}: is not a file; delete it to start anew, or name another"
            )
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{what} {path}: {error.strerror}; name a file that can be read") from None


def save_profile(path: Path, core: Core) -> None:
    """Writes what the core has learned: the whole file or nothing of it. Raises OSError."""
    _write(path, core.save_tables())


def save_plan(path: Path, plan: Plan) -> None:
    """Writes the plan: the whole file or nothing of it. Raises OSError."""
    _write(path, plan_files.encode(plan))


def _write(path: Path, data: bytes) -> None:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident():x}.part")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
