"""The arena at run time, without PyTorch: a device whose memory is the host's."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Ask = Callable[[str], dict[str, Any]]


@pytest.fixture
def ask(compile_program: Callable[..., Path], environment: dict[str, str]) -> Ask:
    """What a case of native_allocator.py finds."""
    runtime = compile_program("arena_fake_cudart.c", shared=True)
    script = Path(__file__).with_name("native_allocator.py")

    def ask(case: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-P", str(script), case, str(runtime)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    return ask


def test_nothing_overlaps_however_programs_deviate(ask: Ask) -> None:
    found = ask("programs")
    assert found["plans"] >= 6
    assert found["conflicts"] > 100
    assert found["deviations"] > 100


def test_what_another_stream_uses_is_not_handed_out_before_that_ends(ask: Ask) -> None:
    found = ask("streams")
    assert found["planned"] > 0
    assert found["used"] > 4


def test_what_is_freed_on_a_stream_is_handed_out_on_that_alone(ask: Ask) -> None:
    assert all(ask("other_stream").values())


def test_programs_run_in_half_as_much_again_as_they_use(ask: Ask) -> None:
    found = ask("shortage")
    assert found["planned"] > 0
    assert found["failed"]
    assert found["more"]


def test_an_arena_that_nothing_uses_makes_room(ask: Ask) -> None:
    assert ask("all_given_back") == {"arena": 0}


def test_what_is_free_of_an_arena_serves_where_the_driver_has_no_more(ask: Ask) -> None:
    assert all(ask("last_resort").values())


def test_small_segments_make_room(ask: Ask) -> None:
    assert ask("small_ones_make_room")["served"]


def test_an_iteration_is_planned_not_its_layers(ask: Ask) -> None:
    found = ask("layers")
    assert found["plan_requests"] == 30 * 11
    assert found["plans"] == 1


def test_what_outlives_an_iteration_leaves_its_plan_alone(ask: Ask) -> None:
    found = ask("kept_results")
    assert found["planned"] >= 800
    assert found["conflicts"] == 0
    assert found["unplanned"] > 0
