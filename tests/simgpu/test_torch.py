"""The CUDA build of PyTorch on the stand-ins alone: training steps run, copies keep the data, times
are those of such a card.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch
MODELS = Path(__file__).with_name("models.py")
CAPTURED = Path(__file__).with_name("captured.py")
REPLAYS = 5


def preload(sim: Path) -> str:
    return " ".join(
        str(sim / name)
        for name in ("libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcupti.so.13")
    )


@pytest.fixture
def train(
    run_sim: Callable[..., Any], sim: Path
) -> Callable[..., tuple[list[float], str, dict[str, float]]]:
    """Steps of a model: their times in ms, standard error, the simulated device's counters."""

    def run(
        kind: str, steps: int, machine: str = "v100-32gb"
    ) -> tuple[list[float], str, dict[str, float]]:
        ran = run_sim(
            sys.executable,
            MODELS,
            kind,
            steps,
            env={"LD_PRELOAD": preload(sim), "DEEPUM_SIM_MACHINE": machine},
            timeout=120,
        )
        times = [
            float(line.split()[1]) for line in ran.out.splitlines() if line.startswith("step ")
        ]
        return times, ran.err, ran.statistics[-1]

    return run


@pytest.mark.parametrize("kind", ["mlp", "gpt2-tiny", "bert-tiny", "dlrm"])
def test_training_steps(
    train: Callable[..., tuple[list[float], str, dict[str, float]]], kind: str
) -> None:
    times, err, _ = train(kind, 3)
    assert len(times) == 3
    # Virtual time, the same on every computer.
    assert all(0.05 < time < 20 for time in times), times
    assert "not simulated" not in err
    assert "deepum-sim:" not in err


def test_gpt2_small_takes_as_long_as_on_such_a_card(
    train: Callable[..., tuple[list[float], str, dict[str, float]]],
) -> None:
    times, err, _ = train("gpt2", 3)
    # 6 FLOP for each of 124 million weights and 8192 tokens and the attention's are 6.7 TFLOP: 0.48
    # s at the V100's peak; memory-bound kernels come on top.
    assert all(480 < time < 1500 for time in times), times
    assert abs(times[1] - times[2]) < 0.05 * times[1]
    assert "deepum-sim:" not in err


def test_a_captured_step_is_replayed(
    run_sim: Callable[..., Any],
    sim: Path,
    deepum: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
) -> None:
    ran = run_sim(sys.executable, CAPTURED, REPLAYS, env={"LD_PRELOAD": preload(sim)}, timeout=120)
    assert ran.err == ""
    times = [float(line.split()[1]) for line in ran.out.splitlines()]
    assert len(times) == REPLAYS
    # Kernels from one synchronisation of the program to the next: three steps one by one, nothing
    # while capturing, then the replays.
    counts = [point["kernels"] for point in ran.statistics[-1]["timeline"]]
    first, *replays = [after - before for before, after in pairwise(counts) if after > before]
    assert first % 3 == 0
    assert replays == [first // 3] * REPLAYS

    # The shim sees a replay as one launch; it changes nothing about what is run.
    stats = tmp_path / "stats.json"
    done = deepum(
        "run",
        "--device",
        "sim:v100-16gb",
        "--stats",
        stats,
        "--",
        sys.executable,
        CAPTURED,
        REPLAYS,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == REPLAYS
    assert json.loads(stats.read_text())["kernels"] == counts[-1]
