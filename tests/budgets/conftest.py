"""Programs under `deepum run` with budgets, on the simulated GPU: a card of that size, or a larger
one that has a budget.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples" / "driver_api"
sys.path.insert(0, str(HERE))

from budget_tools import Ran  # noqa: E402


@pytest.fixture
def run(
    deepum: Callable[..., subprocess.CompletedProcess[str]],
    environment: dict[str, str],
    tmp_path: Path,
) -> Callable[..., Ran]:
    """Runs a command on the simulated V100 16 GB: run(["--gpu-memory", "256MiB"], *command,
    env={...}).
    """

    def run(options: list[str], *command: object, env: dict[str, str] | None = None) -> Ran:
        stats = tmp_path / "stats.json"
        made = {"PYTHONPATH": f"{HERE}:{environment['PYTHONPATH']}"} | (env or {})
        done = deepum(
            "run",
            "--device",
            "sim:v100-16gb",
            "--stats",
            stats,
            *options,
            "--",
            *command,
            env=made,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return Ran(done.stdout, done.stderr, json.loads(stats.read_text()))

    return run


@pytest.fixture
def python(run: Callable[..., Ran]) -> Callable[..., Ran]:
    """Runs a snippet in which budget_client.py's names are known: python(["--host-memory", "1GiB"],
    "...").
    """

    def python(options: list[str], snippet: str, *, env: dict[str, str] | None = None) -> Ran:
        return run(
            options, sys.executable, "-c", "from budget_client import *\n" + snippet, env=env
        )

    return python


@pytest.fixture(scope="session")
def sweep(compile_program: Callable[..., Path]) -> list[str]:
    """A program that computes and checks its numbers: arrays, MiB of each and rounds are its
    further arguments.
    """
    kernels = compile_program(EXAMPLES / "kernels.c", shared=True)
    return [str(compile_program(EXAMPLES / "sweep.c", link_cuda=True)), str(kernels)]
