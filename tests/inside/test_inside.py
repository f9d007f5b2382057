"""What a program asks of deepum while it runs: without deepum, and on the simulated GPU."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

import deepum
from deepum.callbacks.metrics import of_steps
from deepum.core import events
from deepum.core.records import Program
from deepum.core.replay import EventLog
from deepum.daemon.figures import SessionFigures, read
from deepum.errors import UsageError
from deepum.inside import own_session
from deepum.inside.steps import Steps

PROGRAM = Path(__file__).with_name("torch_program.py")
MIB = 1 << 20
NOTHING_YET = read(SessionFigures, {field.name: 0 for field in fields(SessionFigures)})
Deepum = Callable[..., "subprocess.CompletedProcess[str]"]
Run = Callable[..., list[dict[str, Any]]]


def test_without_deepum_nothing_is_done_and_one_warning_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(own_session, "_warned", False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert deepum.stats() is None
        assert deepum.step() is None
        assert deepum.budget("1GiB") is False
        assert deepum.hint(object(), "keep") is False
    (one,) = caught
    assert "deepum.stats: does nothing" in str(one.message)
    assert one.filename == __file__


@pytest.mark.parametrize("size", ["5x", 0, -1, "1KiB"])
def test_a_budget_that_cannot_be_is_refused_anywhere(size: int | str) -> None:
    with pytest.raises(UsageError, match=r"deepum\.budget: "):
        deepum.budget(size)


def test_steps_are_differences_of_looks_at_one_session() -> None:
    steps = Steps()
    assert steps.end(NOTHING_YET) is None
    later = replace(
        NOTHING_YET,
        at_s=2,
        bytes_in=5,
        faults=3,
        gpu_time_s=None,
    )
    found = steps.end(later)
    assert found is not None
    assert (found.number, found.seconds, found.bytes_in, found.faults) == (1, 2, 5, 3)
    assert found.gpu_seconds is None
    assert steps.end(replace(later, session=2)) is None
    assert of_steps(found, 2)["deepum/step_s"] == 1
    assert "deepum/virtual_step_s" not in of_steps(found, 2)


@pytest.fixture
def run(deepum: Deepum, tmp_path: Path) -> Run:
    """What a case of torch_program.py tells on a card of 256 MiB."""

    def run(case: str, *flags: str) -> list[dict[str, Any]]:
        ran = deepum(
            *("run", "--device", "sim", "--gpu-memory", "256MiB", *flags, "--"),
            *(sys.executable, PROGRAM, case),
            timeout=300,
        )
        assert ran.returncode == 0, ran.stderr
        return [json.loads(line) for line in ran.stdout.splitlines()]

    return run


@pytest.mark.torch
def test_steps_have_what_was_moved(run: Run) -> None:
    before, first, *steps = run("steps")
    assert before == {"before": None} and first == {"first": None}
    assert [each["number"] for each in steps] == [1, 2, 3]
    for each in steps[1:]:
        assert each["bytes_in"] >= 256 * MIB  # what the card does not hold
        assert each["gpu_seconds"] > 0
        assert each["resident_bytes"] <= 256 * MIB < 512 * MIB <= each["allocated_bytes"]


@pytest.mark.torch
def test_a_budget_holds_until_it_is_taken_back(run: Run) -> None:
    first, less, again = run("budget")
    assert first["capacity"] == again["capacity"] == 256 * MIB
    assert less["capacity"] == 128 * MIB >= less["resident"]


@pytest.mark.torch
def test_hints_reach_the_driver_and_the_daemon(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log"
    large, small, *errors, last = run("hints", "--record", str(log))
    assert large == {"taken": [True, True, True]}
    assert small == {"taken": [True, True, False]}, "no UM block is its own"
    assert [each["error"] for each in errors] == [
        "deepum.hint: the tensor is not on a GPU; move it there first",
        "deepum.hint: 'hot': is unknown; choose from keep, cold, none",
    ]
    assert last == {"last": 0}
    hints = [event for event in events(EventLog.read(log).records) if isinstance(event, Program)]
    assert [(event.kind, event.advice, event.location) for event in hints[:3]] == [
        ("program_advise", 3, 0),
        ("program_advise", 4, 0),
        ("program_prefetch", 0, -1),
    ]
    assert [event.range.count for event in hints[:2]] == [32, 32]
