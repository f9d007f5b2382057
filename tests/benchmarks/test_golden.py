"""benchmarks/golden.py: a digest for each case is kept, and is that of the core as it is."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def golden(benchmarks: Path) -> ModuleType:
    assert (benchmarks / "golden.py").is_file()
    return importlib.import_module("golden")


def test_every_case_has_a_digest_that_is_kept(golden: ModuleType) -> None:
    assert sorted(json.loads(golden.DIGESTS.read_text())) == sorted(
        str(case) for case in golden.CASES
    )


@pytest.mark.parametrize(
    "name", ["dlrm v100-16gb deepum gated", "dlrm v100-16gb deepum-paper gated"]
)
def test_the_core_decides_as_kept(golden: ModuleType, name: str) -> None:
    case = next(case for case in golden.CASES if str(case) == name)
    assert golden.outcome(case) == json.loads(golden.DIGESTS.read_text())[name]
