"""Helpers beside the tests of reports: the small workloads of simulations."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "simulate"))


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """A training step in G10's form, of which a card of 192 MiB cannot hold all."""
    from small import training

    training(tmp_path / "training")
    return tmp_path / "training"
