"""Helpers beside the tests of reports: the small workloads of simulations."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[1] / "simulate")]


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """A training step in G10's form, of which a card of 192 MiB cannot hold all."""
    from small import training

    training(tmp_path / "training")
    return tmp_path / "training"


@pytest.fixture(scope="session")
def recorded_run(
    compile_program: Callable[..., Path],
    package: Path,
    preloading: Callable[..., dict[str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A folder with run.log, run.log.work and run.json of a program of the driver API on the
    simulated GPU: it adds to 10 arrays of 40 MiB in turn, 4 times, and reads them back.
    """
    examples = Path(__file__).resolve().parents[2] / "examples" / "driver_api"
    kernels = compile_program(examples / "kernels.c", shared=True)
    sweep = compile_program(examples / "sweep.c", link_cuda=True)
    folder = tmp_path_factory.mktemp("recorded")
    with tempfile.TemporaryDirectory(prefix="deepum-t-") as runtime:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("DEEPUM_")
        } | preloading()
        environment |= {"DEEPUM_RUNTIME_DIR": runtime, "DEEPUM_DAEMON_IDLE": "1"}
        command: list[str | Path] = [
            sys.executable,
            "-P",
            "-m",
            "deepum",
            "run",
            "--device",
            "sim",
            "--gpu-memory",
            "256MiB",
            "--record",
            folder / "run.log",
        ]
        command += ["--stats", folder / "run.json", "--", sweep, kernels, "10", "40", "4"]
        subprocess.run(
            command, env=environment, cwd=folder, check=True, capture_output=True, timeout=120
        )
    return folder
