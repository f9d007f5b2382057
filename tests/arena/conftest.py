"""Instances beside the tests, and published ones."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def published() -> Path:
    """The folder of minimalloc's and idealloc's instances, which are not part of this
    repository.
    """
    beside = Path(__file__).resolve().parents[3] / "shared" / "workloads"
    folder = Path(os.environ.get("DEEPUM_TEST_ARENA", str(beside)))
    if not (folder / "minimalloc").is_dir() or not (folder / "idealloc").is_dir():
        pytest.skip(
            f"needs the folders minimalloc and idealloc in {folder}; DEEPUM_TEST_ARENA names "
            f"another place"
        )
    return folder
