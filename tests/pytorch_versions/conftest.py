"""The PyTorches that are tested: the one beside the tests, and those of DEEPUM_TEST_TORCHES,
`VERSION=PYTHON ...`, each a Python that has that version (scripts/test-pytorch-versions makes
them).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))  # main_job reads a step's counts off the timeline


def _others() -> list[tuple[str, str]]:
    pairs = [pair.partition("=") for pair in shlex.split(os.environ.get("DEEPUM_TEST_TORCHES", ""))]
    if wrong := [name for name, _, python in pairs if not os.access(python, os.X_OK)]:
        raise pytest.UsageError(
            f"DEEPUM_TEST_TORCHES: {wrong[0]}: names no interpreter; write VERSION=PYTHON, "
            f"separated by spaces"
        )
    return [(name, python) for name, _, python in pairs]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "python" in metafunc.fixturenames:
        own = pytest.param(sys.executable, id="own", marks=pytest.mark.torch)
        others = [pytest.param(python, id=name) for name, python in _others()]
        metafunc.parametrize("python", [own, *others], scope="session")


@dataclass
class Training:
    """A run of training.py. facts: its last line; steps: (ms, loss as printed)."""

    steps: list[tuple[float, str]]
    facts: dict[str, Any]
    statistics: dict[str, Any] = field(repr=False)
    err: str

    @property
    def simulated(self) -> dict[str, Any]:
        processes = self.statistics["processes"]
        return dict(next(one["simulated"] for one in processes if one["simulated"]))

    def faults(self) -> list[int]:
        """Of each step."""
        from main_job import Step, attribute

        steps = [Step(ms) for ms, _ in self.steps]
        attribute(steps, self.simulated["timeline"])
        return [step.counts["faults"] for step in steps if step.counts is not None]


@pytest.fixture(scope="session")
def launcher(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the `deepum` command for a program of another Python, which finds nothing of this one's:
    launcher(folder, "run", ...).
    """
    runtime = tmp_path_factory.mktemp("runtime")
    runtime.chmod(0o700)

    def run(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
        kept = {
            n: v
            for n, v in os.environ.items()
            if not n.startswith("DEEPUM_") and n not in ("LD_PRELOAD", "LD_LIBRARY_PATH")
        }
        made = kept | {"DEEPUM_RUNTIME_DIR": str(runtime), "DEEPUM_DAEMON_IDLE": "5"}
        command = [sys.executable, "-P", "-m", "deepum", *map(str, arguments)]
        return subprocess.run(
            command, env=made, cwd=folder, text=True, capture_output=True, timeout=300, check=False
        )

    return run


@pytest.fixture(scope="session")
def train(
    launcher: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Training]:
    """train(python, ["--gpu-memory", "512MiB"], "--fused"): training.py under `deepum run` with
    these options. Made once for all tests.
    """
    made: dict[tuple[object, ...], Training] = {}

    def run(python: str, options: tuple[str, ...], *arguments: str) -> Training:
        key = (python, options, arguments)
        if key not in made:
            folder = tmp_path_factory.mktemp("training")
            flags = ("--device", "sim:v100-16gb", "--stats", folder / "stats.json", *options)
            done = launcher(folder, "run", *flags, "--", python, HERE / "training.py", *arguments)
            assert done.returncode == 0, done.stderr[-4000:]
            steps = [
                (float(ms), loss)
                for ms, loss in re.findall(r"step \d+: ([\d.]+) ms, loss (\S+)", done.stdout)
            ]
            statistics = json.loads((folder / "stats.json").read_text())
            made[key] = Training(
                steps, json.loads(done.stdout.splitlines()[-1]), statistics, done.stderr
            )
        return made[key]

    return run
