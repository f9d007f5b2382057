"""The native figures of a machine that somebody named."""

from __future__ import annotations

from typing import Any

from deepum.errors import UsageError
from deepum.simulate.replay import machine


def preset_of(on: str) -> Any:
    """The native figures of a machine. Raises UsageError for an unknown name."""
    try:
        return machine(on)
    except ValueError as error:
        raise UsageError(f"machine '{on}': {error}; see `deepum machines`") from None
