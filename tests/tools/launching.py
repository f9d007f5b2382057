"""Fixtures for programs that launch work, each under `deepum run` on the simulated GPU: what
conftest.py of such a folder imports.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from finished_run import Ran

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def host_module(compile_program: Callable[..., Path]) -> Path:
    """Kernels that are executed on the data."""
    return compile_program("sim_module.c", shared=True)


@pytest.fixture
def run(
    deepum: Callable[..., subprocess.CompletedProcess[str]],
    environment: dict[str, str],
    host_module: Path,
    tmp_path: Path,
) -> Callable[..., Ran]:
    """Runs a command on the simulated V100 16 GB: run(["--gpu-memory", "256MiB"], *command,
    env={...}).
    """

    def run(options: list[str], *command: object, env: dict[str, str] | None = None) -> Ran:
        stats = tmp_path / "stats.json"
        # path_client.py, sim_prelude.py.
        path = f"{TESTS / 'launch_paths'}:{TESTS / 'simgpu'}:{environment['PYTHONPATH']}"
        made = {"PYTHONPATH": path, "SIM_MODULE": str(host_module)} | (env or {})
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
def driver(run: Callable[..., Ran]) -> Callable[..., Ran]:
    """Runs a snippet of the driver API in which the names of path_client.py are known:
    driver(["--gpu-memory", "256MiB"], "...").
    """

    def driver(
        options: list[str], snippet: str, *arguments: object, env: dict[str, str] | None = None
    ) -> Ran:
        return run(
            options,
            sys.executable,
            "-c",
            "from path_client import *\n" + textwrap.dedent(snippet),
            *arguments,
            env=env,
        )

    return driver


@pytest.fixture
def python(run: Callable[..., Ran], tmp_path: Path) -> Callable[..., Ran]:
    """Runs a script, from a file: Triton reads the source of its kernels."""

    def python(
        options: list[str], script: str, *arguments: object, env: dict[str, str] | None = None
    ) -> Ran:
        file = tmp_path / "script.py"
        file.write_text(textwrap.dedent(script))
        return run(options, sys.executable, file, *arguments, env=env)

    return python
