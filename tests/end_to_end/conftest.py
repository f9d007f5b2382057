"""A C program of the driver API with host kernels: sweeps over arrays and checks every number."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@dataclass(frozen=True)
class Outcome:
    """What a run of the program gave."""

    result: subprocess.CompletedProcess[str]
    statistics: dict[str, Any]

    @property
    def rounds(self) -> list[float]:
        """Milliseconds of each round, virtual."""
        return [
            float(line.split()[2])
            for line in self.result.stdout.splitlines()
            if line.startswith("round ")
        ]


@pytest.fixture(scope="session")
def sweep(compile_program: Callable[..., Path]) -> list[str]:
    """The command: arrays, MiB of each and rounds are its further arguments."""
    kernels = compile_program(EXAMPLES / "driver_api" / "kernels.c", shared=True)
    program = compile_program(EXAMPLES / "driver_api" / "sweep.c", link_cuda=True)
    return [str(program), str(kernels)]


@pytest.fixture
def run_sweep(
    deepum: Callable[..., subprocess.CompletedProcess[str]], sweep: list[str], tmp_path: Path
) -> Callable[..., Outcome]:
    """Runs it on a card of 256 MiB: run_sweep("--policy", "on-demand", rounds=6); `before`: a
    command that starts it.
    """

    def run(
        *options: object,
        arrays: int = 10,
        size: int = 40,
        rounds: int = 6,
        env: dict[str, str] | None = None,
        before: tuple[str, ...] = (),
    ) -> Outcome:
        stats = tmp_path / "stats.json"
        flags = ("--device", "sim", "--gpu-memory", "256MiB", "--stats", stats, *options)
        result = deepum("run", *flags, "--", *before, *sweep, arrays, size, rounds, env=env)
        assert result.returncode == 0, result.stderr
        assert result.stdout.endswith(f"all {arrays} arrays are right\n")
        return Outcome(result, json.loads(stats.read_text()))

    return run
