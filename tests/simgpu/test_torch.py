"""The CUDA build of PyTorch on the stand-ins alone: training steps run, copies keep the data, times are those of such a card."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch
MODELS = Path(__file__).with_name("models.py")


@pytest.fixture
def train(run_sim: Callable[..., Any], sim: Path) -> Callable[..., tuple[list[float], str, dict[str, float]]]:
    """Steps of a model: their times in ms, standard error, the simulated device's counters."""

    def run(kind: str, steps: int, machine: str = "v100-32gb") -> tuple[list[float], str, dict[str, float]]:
        libraries = " ".join(str(sim / name) for name in ("libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13"))
        ran = run_sim(sys.executable, MODELS, kind, steps, env={"LD_PRELOAD": libraries, "DEEPUM_SIM_MACHINE": machine}, timeout=120)
        times = [float(line.split()[1]) for line in ran.out.splitlines() if line.startswith("step ")]
        return times, ran.err, ran.statistics[-1]

    return run


@pytest.mark.parametrize("kind", ["mlp", "gpt2-tiny", "bert-tiny", "dlrm"])
def test_training_steps(train: Callable[..., tuple[list[float], str, dict[str, float]]], kind: str) -> None:
    times, err, _ = train(kind, 3)
    assert len(times) == 3
    assert all(0.05 < time < 20 for time in times), times  # virtual time, the same on every computer
    assert "not simulated" not in err
    assert "deepum-sim:" not in err


@pytest.mark.parametrize("machine", ["rtx4090", "h200"])
def test_other_machines(train: Callable[..., tuple[list[float], str, dict[str, float]]], machine: str) -> None:
    times, err, _ = train("gpt2-tiny", 2, machine)
    assert len(times) == 2
    assert "deepum-sim:" not in err


def test_gpt2_small_takes_as_long_as_on_such_a_card(train: Callable[..., tuple[list[float], str, dict[str, float]]]) -> None:
    times, err, _ = train("gpt2", 3)
    # 6 FLOP for each of 124 million weights and 8192 tokens and the attention's are 6.7 TFLOP: 0.48 s at the V100's peak; memory-bound
    # kernels come on top.
    assert all(480 < time < 1500 for time in times), times
    assert abs(times[1] - times[2]) < 0.05 * times[1]
    assert "deepum-sim:" not in err
