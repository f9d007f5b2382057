"""The arena as PyTorch's allocator, on the simulated GPU, beside the caching allocator."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch
SCRIPT = Path(__file__).with_name("torch_program.py")
Deepum = Callable[..., "subprocess.CompletedProcess[str]"]
Run = Callable[..., tuple[str, dict[str, Any]]]


@pytest.fixture
def run(deepum: Deepum) -> Run:
    """What a case of torch_program.py prints under an allocator, and the arena's statistics."""

    def run(
        allocator: str, case: str, *options: str, shim: bool = False
    ) -> tuple[str, dict[str, Any]]:
        result = deepum(
            "run",
            *("--device", "sim:a100-40gb", *options, "--"),
            *(sys.executable, SCRIPT, allocator, case),
            env={} if shim else {"DEEPUM_DISABLE": "1"},
            timeout=300,
        )
        assert result.returncode == 0, result.stderr
        documents = [line for line in result.stderr.splitlines() if line.startswith("{")]
        return result.stdout, json.loads(documents[-1]) if documents else {}

    return run


@pytest.mark.parametrize("shim", [False, True], ids=["plain", "shim"])
def test_random_programs_compute_the_same_bits(run: Run, shim: bool) -> None:
    expected, _ = run("caching", "random_programs", shim=shim)
    found, figures = run("arena", "random_programs", shim=shim)
    assert found == expected
    assert figures["planned"] > 500
    assert figures["conflicts"] > 50
    assert figures["deviating"] > 50


def test_a_training_follows_its_plan(run: Run) -> None:
    _, figures = run("arena", "training")
    assert figures["plans"] == 1
    assert figures["conflicts"] == figures["deviating"] == 0
    assert figures["planned"] >= 9 * figures["plan_requests"]
    # The search ends by the clock, and may leave a bit.
    assert figures["plan_load_bytes"] <= figures["plan_bytes"] <= 1.01 * figures["plan_load_bytes"]


def test_a_training_that_recomputes_follows_its_plan(run: Run) -> None:
    _, figures = run("arena", "recomputing")
    assert figures["plans"] >= 1
    assert figures["planned"] >= 5 * figures["plan_requests"]


def test_a_shortage_is_the_error_that_programs_know(run: Run) -> None:
    found, figures = run("arena", "shortage")
    assert found == "True\nlimited\n1048576 1048576\n" == run("caching", "shortage")[0]
    assert figures["failures"] == 2


def test_a_graph_is_refused_in_one_line(run: Run) -> None:
    found, _ = run("arena", "graph")
    assert found.startswith("deepum.arena: memory pools and CUDA graphs need")


def test_what_is_installed_too_late_says_so(run: Run) -> None:
    found, _ = run("caching", "late")
    assert found.splitlines()[-1] == (
        "UsageError arena: PyTorch has allocated on the GPU already; install the arena before that"
    )


def test_the_profiler_is_told_of_blocks(run: Run) -> None:
    assert run("arena", "reported")[0] == run("caching", "reported")[0] == "[12582912]\n"


def test_a_script_runs_as_it_is(deepum: Deepum) -> None:
    started = (sys.executable, "-P", "-m", "deepum.arena.pytorch")
    result = deepum(
        *("run", "--device", "sim:a100-40gb", "--", *started, SCRIPT, "caching", "graph"),
        env={"DEEPUM_DISABLE": "1"},
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("deepum.arena: memory pools and CUDA graphs need")


@pytest.mark.parametrize("arguments", [[], ["--help-me"], ["no-such-script.py"]])
def test_what_is_no_script_is_refused(arguments: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "deepum.arena.pytorch", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("deepum: error: arena") and done.stderr.count("\n") == 1
