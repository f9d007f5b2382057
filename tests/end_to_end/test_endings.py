"""However a program ends, its statistics have what was known, and say what is missing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# Of tests/programs/ending.c; all are complete when it is ready, fills of the arrays included.
ARRAYS, KERNELS = 12, 36


@pytest.fixture(scope="session")
def ending(compile_program: Callable[..., Path]) -> list[str]:
    """The command; how it is to end is its further argument."""
    kernels = compile_program(EXAMPLES / "driver_api" / "kernels.c", shared=True)
    return [str(compile_program("ending.c", link_cuda=True)), str(kernels)]


def _launch(environment: dict[str, str], folder: Path, *command: str) -> subprocess.Popen[str]:
    flags = ["--device", "sim", "--gpu-memory", "256MiB", "--stats", str(folder / "s.json")]
    run = [sys.executable, "-P", "-m", "deepum", "run", *flags, "--", *command]
    return subprocess.Popen(
        run,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _outcome(run: subprocess.Popen[str], folder: Path) -> tuple[dict[str, Any], str]:
    _, messages = run.communicate(timeout=60)
    return json.loads((folder / "s.json").read_text()), messages


def _all_is_known(statistics: dict[str, Any], messages: str, how: str) -> None:
    assert statistics["ended"] == how and statistics["elapsed_s"] > 0
    assert (
        statistics["kernels"] == KERNELS
        and statistics["gpu_time_s"] > 0
        and statistics["faults"] > 0
    )
    assert statistics["bytes_h2d"] > 0 and statistics["bytes_d2h"] > 0
    assert statistics["missing"] == {
        "last_step": "the simulated GPU left no timeline",
        "steady_step": "the simulated GPU left no timeline",
        "plans": "--policy planned was not given",
    }
    (process,) = statistics["processes"]
    assert process["session"]["core"]["launches"] == ARRAYS + KERNELS
    assert process["simulated"]["complete"] is False
    assert len(statistics["warnings"]) == 1, statistics["warnings"]
    warning = statistics["warnings"][0]
    assert (
        f"process {process['pid']} {how} without its exit handlers" in warning
        and "no timeline" in warning
    )
    assert (
        f"{KERNELS} kernels in {statistics['gpu_time_s']:.3f} s of virtual GPU time" in messages
        and warning in messages
    )


@pytest.mark.parametrize(
    ("way", "code", "how"),
    [
        ("_exit", 3, "exited with code 3"),
        ("abort", -signal.SIGABRT, "was ended by SIGABRT"),
        ("segfault", -signal.SIGSEGV, "was ended by SIGSEGV"),
    ],
)
def test_a_program_that_ends_itself(
    environment: dict[str, str], ending: list[str], tmp_path: Path, way: str, code: int, how: str
) -> None:
    run = _launch(environment, tmp_path, *ending, way)
    _all_is_known(*_outcome(run, tmp_path), how)
    assert run.returncode == code


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP],
    ids=lambda number: number.name,
)
def test_a_program_that_is_ended_by_a_signal(
    environment: dict[str, str], ending: list[str], tmp_path: Path, number: signal.Signals
) -> None:
    run = _launch(environment, tmp_path, *ending, "wait")
    assert run.stdout is not None and run.stdout.readline() == "ready\n"
    if number == signal.SIGKILL:  # of the program: of the launcher nobody is left to report
        children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        os.kill(int(children[0]), number)
    elif number == signal.SIGINT:  # as a terminal does it
        os.killpg(run.pid, number)
    else:
        run.send_signal(number)
    _all_is_known(*_outcome(run, tmp_path), f"was ended by {number.name}")
    assert run.returncode == -number


def test_a_program_that_replaces_itself_is_told_of_twice(
    environment: dict[str, str], ending: list[str], tmp_path: Path
) -> None:
    statistics, messages = _outcome(
        _launch(environment, tmp_path, *ending, "exec", *ending, "_exit"), tmp_path
    )
    assert statistics["kernels"] == 2 * KERNELS
    first, second = statistics["processes"]
    assert (
        first["pid"] == second["pid"]
        and first["simulated"]["kernels"] == second["simulated"]["kernels"] == KERNELS
    )
    assert (
        "replaced itself by exec: " in statistics["warnings"][0]
        and "exited with code 3" in statistics["warnings"][1]
    )
    assert "of 2 processes" in messages


def test_several_processes_are_told_apart(
    environment: dict[str, str], ending: list[str], tmp_path: Path
) -> None:
    script = f"{' '.join(ending)} _exit & {' '.join(ending)} _exit; wait"
    statistics, messages = _outcome(_launch(environment, tmp_path, "sh", "-c", script), tmp_path)
    times = [process["simulated"]["gpu_time_s"] for process in statistics["processes"]]
    assert (
        len(times) == 2
        and statistics["gpu_time_max_s"] == max(times)
        and statistics["gpu_time_s"] == sum(times)
    )
    assert "each process had simulated GPUs of its own" in messages
    assert all(
        f"process {process['pid']}: {KERNELS} kernels in" in messages
        for process in statistics["processes"]
    )


def test_what_nobody_counted_has_a_reason(
    environment: dict[str, str], ending: list[str], tmp_path: Path
) -> None:
    statistics, _ = _outcome(
        _launch(environment | {"DEEPUM_DISABLE": "1"}, tmp_path, "true"), tmp_path
    )
    assert (
        statistics["gpu_time_s"] is None
        and statistics["missing"]["gpu_time_s"] == "no process used the GPU, as far as is known"
    )
    assert set(statistics["missing"]) == {key for key, value in statistics.items() if value is None}
