"""Builds of PyTorch with CUDA 12 and 13 under deepum on the simulated GPU: all that depends on a
version of PyTorch or CUDA.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from optimizer_log import CHUNKS, UM_BLOCKS, WEIGHTS, named_in_second_step

from deepum.doctor import pytorch

ROOT = Path(__file__).resolve().parents[2]
ENOUGH = ("--policy", "on-demand")
TOO_LITTLE = ("--gpu-memory", "512MiB")
Train = Callable[..., Any]
# Kernels that follow the simulated GPU's general rule: small ones of the embedding's gradient
# (docs/pytorch-on-the-simulated-gpu.md).
GENERAL = (
    "DeviceRadixSortExclusiveSum",
    "DeviceScanInit",
    "DeviceCompactInit",
    "EmbeddingBackwardKernel",
)


def test_the_stand_ins_of_its_own_cuda_are_loaded(train: Train, python: str) -> None:
    import deepum

    facts = train(python, TOO_LITTLE).facts
    major = facts["cuda"].split(".")[0]
    sim = Path(deepum.__file__).parent / "sim"
    assert {
        str(sim / f"{name}.so.{major}")
        for name in ("libcudart", "libcublas", "libcublasLt", "libcupti")
    } < set(facts["libraries"])
    assert not facts["cudnn"]


def test_too_little_memory_changes_no_result(train: Train, python: str) -> None:
    enough, little = train(python, ENOUGH), train(python, TOO_LITTLE)
    assert little.facts["peak_bytes"] > 2 * (512 << 20)
    assert [loss for _, loss in little.steps] == [loss for _, loss in enough.steps]
    assert len(little.steps) == 6
    assert little.facts == enough.facts
    assert little.facts["frozen_unchanged"]
    assert little.facts["trained_zero"]


def test_faults_are_gone_after_the_third_step(train: Train, python: str) -> None:
    on_demand, deepum = (
        train(python, ("--policy", "on-demand", *TOO_LITTLE)).faults(),
        train(python, TOO_LITTLE).faults(),
    )
    assert min(on_demand[3:]) > 1000
    assert sum(deepum[3:]) <= 0.05 * sum(on_demand[3:])


def test_the_allocators_blocks_are_seen(train: Train, python: str) -> None:
    """Memory of dead blocks is dropped, which takes both what is handed out and what is
    taken back.
    """
    statistics = train(python, TOO_LITTLE).statistics
    assert statistics["bytes_invalidated"] > 1 << 30
    assert statistics["warnings"] == []


@pytest.mark.parametrize("attention", ["efficient", "flash", "math"])
def test_every_kernel_is_read_and_known(train: Train, python: str, attention: str) -> None:
    """So that what it touches and costs is not guessed; FlashAttention's is known by its bytes
    alone.
    """
    ran = train(python, ("--gpu-memory", "1GiB"), "--attention", attention)
    assert ran.simulated["not_simulated"] == []
    assert ran.simulated["unparsed_kernels"] == []
    allowed = (*GENERAL, "triu_tril_kernel") if attention == "math" else GENERAL
    assert [
        name
        for name in ran.simulated["general_kernels"]
        if not any(part in name for part in allowed)
    ] == []
    assert "deepum-sim" not in ran.err


@pytest.mark.parametrize(
    ("attention", "compute_s", "gib"),
    [("efficient", 0.2906, 42.4), ("flash", 0.0638, 28.3), ("math", 0.3184, 72.9)],
)
def test_the_model_costs_the_same_whatever_the_version(
    train: Train, python: str, attention: str, compute_s: float, gib: float
) -> None:
    """The figures are those of 2.12.1. Versions differ by a few kernels; an operand that is misread
    is far more.
    """
    ran = train(python, ("--gpu-memory", "1GiB"), "--attention", attention).simulated
    assert ran["compute_s"] == pytest.approx(compute_s, rel=0.05)
    assert ran["bytes_accessed"] / 2**30 == pytest.approx(gib, rel=0.08)


def _launches(room: int) -> list[int]:
    """How many of the weights each launch of a foreach kernel works on that has room for so many
    chunks.
    """
    starts = range(0, WEIGHTS * CHUNKS, room)
    return [
        (min(start + room, WEIGHTS * CHUNKS) - 1) // CHUNKS - start // CHUNKS + 1
        for start in starts
    ]


@pytest.mark.parametrize("kind", ["foreach", "fused"])
def test_optimizer_launches_name_their_tensors_only(
    launcher: Callable[..., subprocess.CompletedProcess[str]],
    python: str,
    kind: str,
    tmp_path: Path,
) -> None:
    script, log = ROOT / "tests" / "programs" / "optimizer_steps.py", tmp_path / "log"
    done = launcher(
        tmp_path, "run", "--device", "sim:v100-16gb", "--record", log, "--", python, script, kind
    )
    assert done.returncode == 0, done.stderr[-4000:]
    named = named_in_second_step(log)
    by_room = {320: _launches(320), 2240: _launches(2240)}  # structs of 4 KiB and of 32 KiB
    if kind == "fused":  # step counters are counted up first; all of them lie in one UM block
        assert named in [
            [1, *(4 * UM_BLOCKS * tensors + 1 for tensors in launches)]
            for launches in by_room.values()
        ]
        return
    launches = by_room[320 if len(named) % len(by_room[320]) == 0 else 2240]
    lists = [named[i] // (UM_BLOCKS * launches[0]) for i in range(0, len(named), len(launches))]
    assert min(lists) == 1 and max(lists) == 3  # mul updates one, addcdiv reads two and updates one
    assert named == [UM_BLOCKS * count * tensors for count in lists for tensors in launches]


def test_a_captured_step_is_replayed(
    launcher: Callable[..., subprocess.CompletedProcess[str]], python: str, tmp_path: Path
) -> None:
    script = ROOT / "tests" / "simgpu" / "captured.py"
    done = launcher(tmp_path, "run", "--device", "sim:v100-16gb", "--", python, script, 5)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.count("replay ") == 5
    assert "deepum-sim" not in done.stderr


def test_the_doctor_says_that_it_is_fit(python: str) -> None:
    command = [
        python,
        "-c",
        "import importlib.util as i; print(i.find_spec('torch').submodule_search_locations[0])",
    ]
    folder = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    check = pytorch.version(Path(folder))
    assert (check.level, check.remedy) == ("ok", ""), check
    assert check.data["cuda"] and check.data["version"] in check.found
    assert python != sys.executable or "newer" not in check.found
