"""The demo's table in the README is of the form that the demo prints, and its figures belong
together.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def _printed() -> list[str]:
    """The README's lines, from the names of the runs to the bound."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    first = next(
        number
        for number, line in enumerate(lines)
        if line.split() == ["on", "demand", "deepum", "unlimited"]
    )
    last = next(
        number
        for number in range(first, len(lines))
        if lines[number].strip().startswith("lower bound:")
    )
    return [line[4:] for line in lines[first : last + 1]]


def test_the_table_in_the_readme_is_what_the_demo_would_print(benchmarks: Path) -> None:
    job = importlib.import_module("main_job")
    printed = _printed()
    rows = [list(map(float, line.split())) for line in printed if re.match(r" +\d+ ", line)]
    runs = [job.Run(name, [], None, {}) for name in ("on demand", "deepum", "unlimited")]
    for row in rows:
        for run, at in zip(runs, (1, 5, 9), strict=True):
            ms, faults, to, back = row[at : at + 4]
            counts = dict.fromkeys(job.COUNTERS, 0) | {
                "faults": faults,
                "bytes_h2d": to * 2**30,
                "bytes_d2h": back * 2**30,
            }
            run.steps.append(job.Step(ms, counts))
    footprint, card = (
        float(number) * 2**30
        for number in _NUMBER.findall(next(line for line in printed if "footprint" in line))[:2]
    )
    runs[0].peak_allocated_bytes = int(footprint)
    bound = next(line for line in printed if line.startswith("lower bound"))
    limits = dict(
        zip(
            ("bound_ms", "compute_ms", "transfer_ms"),
            map(float, _NUMBER.findall(bound)),
            strict=False,
        )
    )
    made = job.table(runs, limits, int(card)).splitlines()
    assert len(rows) >= job.WARM_UP + 1
    assert [_NUMBER.sub("N", line).split() for line in made] == [
        _NUMBER.sub("N", line).split() for line in printed
    ]
    assert made[: len(rows) + 2] == printed[: len(rows) + 2], "the steps, column by column"
    for ours, theirs in zip(made, printed, strict=True):  # made of figures that were rounded
        expected, found = (
            [float(number) for number in _NUMBER.findall(line)] for line in (theirs, ours)
        )
        assert found == pytest.approx(expected, rel=0.01, abs=0.02), theirs
