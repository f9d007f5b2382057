"""Python packages that tests use and deepum does without."""

from __future__ import annotations

import importlib
import os
from types import ModuleType

import pytest


def required_packages() -> bool:
    """A package that is missing is a failure."""
    return "packages" in os.environ.get("DEEPUM_TEST_REQUIRE", "").split(",")


def needed(name: str, extra: str = "") -> ModuleType:
    """The module of this name. Without it the test is skipped; where DEEPUM_TEST_REQUIRE names
    `packages`, it fails.
    """
    if required_packages():
        return importlib.import_module(name)
    reason = f"needs pip install deepum[{extra}]" if extra else None
    module: ModuleType = pytest.importorskip(name, reason=reason)
    return module
