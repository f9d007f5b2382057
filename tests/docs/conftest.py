"""The documentation site, built once for all tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from required import needed

ROOT = Path(__file__).resolve().parents[2]


Build = Callable[[Path, Path], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="package")
def built() -> Build:
    """What docs/site/build.py of a checkout says when it builds into a folder."""
    for package in ("sphinx", "furo", "myst_parser"):
        needed(package, "docs")

    def built(checkout: Path, target: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(checkout / "docs" / "site" / "build.py"), str(target)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)

    return built


@pytest.fixture(scope="package")
def site(built: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site; its pages in Markdown are in the one named like it with `-source`."""
    target = tmp_path_factory.mktemp("documentation") / "site"
    result = built(ROOT, target)
    assert result.returncode == 0, result.stderr
    return target
