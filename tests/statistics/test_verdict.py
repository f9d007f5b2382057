"""What limits a run and what to try: each rule of docs/usage.md, case by case."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from deepum.statistics.verdict import (
    EXPLAINED,
    NAMES,
    Costs,
    Interval,
    Limit,
    Run,
    advice,
    limit,
    working,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "usage.md"
# 10 GB/s to the GPU, 5 back; 100 us a batch and 100 ms a GB that comes by faults.
COSTS = Costs(10.0, 5.0, 100e-6, 1e-10)
GB = 10**9


def took(
    seconds: float = 1.0,
    compute_s: float = 0.5,
    batches: float = 0,
    demand: float = 0,
    bytes_in: float = 0,
    bytes_out: float = 0,
) -> Interval:
    return Interval(seconds, compute_s, 0, batches, demand, bytes_in, bytes_out)


@pytest.mark.parametrize(
    ("interval", "limited"),
    [
        (took(compute_s=1.0), Limit.COMPUTE),
        (took(compute_s=0.91), Limit.COMPUTE),
        (took(compute_s=1.2), Limit.COMPUTE),  # kernels side by side
        (took(compute_s=0.91, bytes_in=9 * GB, batches=900), Limit.COMPUTE),
        (took(compute_s=0.89, bytes_in=9 * GB), Limit.LINK),
        (took(), Limit.IDLE),
        (took(bytes_in=2.4 * GB), Limit.IDLE),
        (took(bytes_in=2.6 * GB), Limit.LINK),
        (took(bytes_out=1.3 * GB), Limit.LINK),  # the slower direction
        (took(bytes_in=1.3 * GB, bytes_out=1.2 * GB), Limit.IDLE),  # they go at the same time
        (took(batches=2400), Limit.IDLE),
        (took(batches=2600), Limit.FAULTS),
        (took(demand=2.6 * GB, bytes_in=2.6 * GB), Limit.FAULTS),  # their moves are of the faults
        (took(batches=100, demand=1 * GB, bytes_in=9 * GB), Limit.LINK),  # few of many moves
        (took(seconds=0.0, compute_s=0.0), Limit.COMPUTE),
        (None, Limit.UNKNOWN),
    ],
)
def test_what_limits(interval: Interval | None, limited: Limit) -> None:
    assert limit(interval, COSTS) is limited


def test_on_a_machine_that_nobody_knows_only_the_kernels_can_be_told() -> None:
    assert limit(took(compute_s=0.95), None) is Limit.COMPUTE
    assert limit(took(bytes_in=9 * GB), None) is Limit.UNKNOWN


RUN = Run(policy="correlation", fits=False, steps=9, simulated=True)
PYTORCH = replace(RUN, pytorch=True)
CASES: list[tuple[Run, Limit, list[str]]] = [
    (replace(RUN, fits=True), Limit.LINK, []),
    (RUN, Limit.COMPUTE, []),
    (replace(RUN, fits=True, refused=1), Limit.COMPUTE, ["--host-memory SIZE"]),
    (replace(RUN, nearly_full=True), Limit.COMPUTE, ["--host-memory SIZE"]),
    (RUN, Limit.UNKNOWN, ["deepum compare -- COMMAND"]),
    (replace(RUN, policy="on-demand"), Limit.FAULTS, ["--policy correlation"]),
    (replace(RUN, policy="on-demand"), Limit.LINK, ["--policy correlation"]),
    (replace(RUN, policy="on-demand"), Limit.IDLE, ["the program's own waits and input"]),
    (RUN, Limit.FAULTS, ["--record FILE, then deepum simulate FILE"]),
    (replace(RUN, steps=3), Limit.FAULTS, ["a longer run, with --profile FILE"]),
    (replace(RUN, steps=0), Limit.FAULTS, ["a look at docs/programs.md"]),
    (
        replace(RUN, launches_over_capacity=2),
        Limit.FAULTS,
        ["a smaller batch", "--record FILE, then deepum simulate FILE"],
    ),
    (PYTORCH, Limit.LINK, ["--remat auto", "another batch size", "--policy planned"]),
    (RUN, Limit.LINK, ["another batch size", "--policy planned"]),
    (
        replace(PYTORCH, launches_over_capacity=2, steps=3),
        Limit.LINK,
        ["a smaller batch", "--remat auto"],
    ),
    (replace(PYTORCH, steps=3), Limit.LINK, ["--remat auto", "another batch size"]),
    (
        replace(PYTORCH, recomputes=True, policy="planned"),
        Limit.LINK,
        ["another batch size"],
    ),
    (PYTORCH, Limit.COMPUTE, []),
    (replace(PYTORCH, policy="on-demand"), Limit.LINK, ["--policy correlation"]),
    (RUN, Limit.IDLE, ["the program's own waits and input"]),
]


@pytest.mark.parametrize(("run", "limited", "tries"), CASES)
def test_what_to_try(run: Run, limited: Limit, tries: list[str]) -> None:
    assert [one.what for one in advice(run, limited)] == tries


@pytest.mark.parametrize(
    ("run", "gain", "answer"),
    [
        (replace(RUN, failed="was ended by SIGKILL", fits=True), 3.0, "It failed"),
        (replace(RUN, fits=True, policy="on-demand"), None, "Nothing to do"),
        (replace(RUN, policy="on-demand", coverage=1.0), 1.0, "It only watched"),
        (replace(RUN, coverage=1.0), 0.9, "No"),
        (replace(RUN, coverage=1.0), 1.01, "No gain"),
        (replace(RUN, coverage=0.95), 3.0, "Yes"),
        (replace(RUN, coverage=0.95), None, "Yes"),
        (replace(RUN, coverage=0.6), 3.0, "In part"),
        (replace(RUN, coverage=0.3), None, "Hardly"),
        (RUN, 3.0, "Yes"),
        (RUN, None, "Not known"),
        (replace(RUN, simulated=False), None, "Not known"),
    ],
)
def test_whether_it_works(run: Run, gain: float | None, answer: str) -> None:
    word, why = working(run, gain)
    assert word == answer and why


def test_the_page_has_each_limit_and_all_that_is_tried() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert set(NAMES) == set(EXPLAINED) == set(Limit)
    rows = re.findall(r"^\| (.*?) \| .* \|$", page, re.MULTILINE)
    assert [name for name in NAMES.values() if name not in rows] == []
    tried = {one for run, limited, _ in CASES for one in (a.what for a in advice(run, limited))}
    assert [what for what in sorted(tried) if what not in page] == []
