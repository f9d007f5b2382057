"""Helpers beside the tests of simulation."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def published() -> Path:
    """G10's workloads, which are not part of this repository."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "workloads" / "g10"
    folder = Path(os.environ.get("DEEPUM_TEST_G10", str(beside)))
    if not folder.is_dir():
        pytest.skip(f"needs G10's workloads at {folder}; DEEPUM_TEST_G10 names another place")
    return folder
