"""What benchmarks/iterations.py makes of its results."""

from __future__ import annotations

import json

import pytest


@pytest.mark.usefixtures("benchmarks")
def test_each_is_found_within_four_steps_but_those_that_differ() -> None:
    from iterations import KEPT

    kept = json.loads(KEPT.file.read_text(encoding="utf-8"))
    differ = {"experts", "lstm", "llama-long"}
    assert {name for name, found in kept.items() if not found["changes"]} == differ
    for found in kept.values():
        for step, period in found["changes"]:
            assert step <= 4
            assert period == found["step"]
