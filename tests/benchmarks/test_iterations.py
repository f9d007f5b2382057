"""docs/decisions/017 is what benchmarks/iterations.py makes of its results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.mark.usefixtures("benchmarks")
def test_the_page_tells_the_file() -> None:
    from iterations import FILE, PAGE, page

    text = PAGE.read_text(encoding="utf-8")
    assert page(json.loads(FILE.read_text(encoding="utf-8")), text) == text


@pytest.mark.usefixtures("benchmarks")
def test_each_is_found_within_four_steps_but_those_that_differ() -> None:
    from iterations import FILE

    kept = json.loads(Path(FILE).read_text(encoding="utf-8"))
    differ = {"experts", "lstm", "llama-long"}
    assert {name for name, found in kept.items() if not found["changes"]} == differ
    for found in kept.values():
        for step, period in found["changes"]:
            assert step <= 4
            assert period == found["step"]
