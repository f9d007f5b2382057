"""Threads that use everything at once compute what is right, alone on the simulated driver and with
all of deepum between.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def program(compile_program: Callable[..., Path], sim_module: Path) -> list[object]:
    return [compile_program("sanitizer_threads.c", link_cuda=True), sim_module]


@pytest.mark.parametrize("forks", [0, 2])
def test_on_the_simulated_driver_alone(run: Run, program: list[object], forks: int) -> None:
    ran = run(*program, 4, 25, forks, leaks=forks == 0)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "ok\n", "")


@pytest.mark.parametrize("lock_step", ["0", "1"])
@pytest.mark.parametrize("forks", [0, 2])
def test_under_the_shim_with_a_daemon_and_its_mover(
    run: Run, program: list[object], runtime_dir: Path, tmp_path: Path, forks: int, lock_step: str
) -> None:
    """On a card that is too small for it all."""
    settings = {
        "DEEPUM_SYNC": lock_step,
        "DEEPUM_SIM_MEMORY": str(12 << 20),
        "DEEPUM_STATS_DIR": str(tmp_path),
    }
    ran = run(*program, 4, 25, forks, shim=True, leaks=forks == 0, env=settings)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "ok\n", "")
    assert "session of process" in (runtime_dir / "daemon.log").read_text()
    moved = [json.loads(path.read_text()) for path in tmp_path.glob("sim-*.json")]
    assert any(each["bytes_prefetched"] > 0 and each["bytes_prefetched_out"] > 0 for each in moved)
