"""The real CUDA build of PyTorch on the simulated GPU, under deepum: the demo's job at a small
size.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from required import needed

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.torch
Deepum = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The figures of the main job as the demo does it: GPT-2 small on the simulated V100 16 GB."""
    import os
    import tempfile

    folder = tmp_path_factory.mktemp("job")
    with tempfile.TemporaryDirectory(prefix="deepum-t-") as runtime:
        command = [sys.executable, "-P", str(ROOT / "benchmarks" / "main_job.py")]
        command += ["--steps", "7", "--json", str(folder / "job.json")]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("DEEPUM_")}
        path = os.pathsep.join(
            [str(ROOT / "tests" / "programs" / "site"), os.environ.get("PYTHONPATH", "")]
        )
        environment = kept | {
            "PYTHONPATH": path,
            "DEEPUM_RUNTIME_DIR": runtime,
            "DEEPUM_DAEMON_IDLE": "5",
        }
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=500, check=False
        )
    assert result.returncode == 0, result.stderr[-4000:]
    print(result.stdout)
    return dict(json.loads((folder / "job.json").read_text()))


def _steady(job: dict[str, Any], name: str, counter: str) -> float:
    run = next(run for run in job["runs"] if run["name"] == name)
    steps = run["steps"][3:]
    counted = [step["ms"] if counter == "ms" else step["counts"][counter] for step in steps]
    return float(sum(counted)) / len(steps)


def test_the_footprint_exceeds_the_card(job: dict[str, Any]) -> None:
    assert 1.3 < job["runs"][0]["peak_allocated_bytes"] / job["memory_bytes"] < 2.2


def test_faults_are_gone_after_the_third_step(job: dict[str, Any]) -> None:
    assert _steady(job, "deepum", "faults") <= 0.05 * _steady(job, "on demand", "faults")


def test_it_is_faster_than_on_demand_as_far_as_the_bound_allows(job: dict[str, Any]) -> None:
    on_demand, deepum = _steady(job, "on demand", "ms"), _steady(job, "deepum", "ms")
    assert job["bound"]["bound_ms"] <= deepum
    assert deepum <= max(on_demand / 2, 1.5 * job["bound"]["bound_ms"])


def test_with_prefetching_disabled_the_gain_vanishes(job: dict[str, Any]) -> None:
    run = next(run for run in job["runs"] if run["name"] == "on demand")
    assert run["statistics"]["bytes_prefetched"] == 0
    assert _steady(job, "on demand", "ms") > 1.5 * _steady(job, "deepum", "ms")


def test_the_script_runs_alike_without_pressure(job: dict[str, Any]) -> None:
    unlimited = next(run for run in job["runs"] if run["name"] == "unlimited")
    assert unlimited["statistics"]["bytes_evicted"] == 0
    assert unlimited["statistics"]["warnings"] == []


@pytest.mark.parametrize("script", ["train_mlp.py", "dlrm_like.py"])
def test_other_scripts_run(deepum: Deepum, tmp_path: Path, script: str) -> None:
    small = {
        "train_mlp.py": ("--width", 512, "--batch", 64),
        "dlrm_like.py": ("--tables", 4, "--rows", 100_000, "--batch", 64),
    }[script]
    flags = ("--device", "sim", "--gpu-memory", "128MiB", "--stats", "s.json")
    result = deepum(
        "run",
        *flags,
        "--",
        sys.executable,
        ROOT / "examples" / script,
        *small,
        "--steps",
        5,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("step ") == 5
    assert json.loads((tmp_path / "s.json").read_text())["kernels"] > 0


def test_a_model_whose_needs_are_random_is_foretold_less_well(
    deepum: Deepum, tmp_path: Path
) -> None:
    small = ("--tables", 6, "--rows", 200_000, "--batch", 64, "--lookups", 1, "--steps", 6)
    flags = (
        "--device",
        "sim",
        "--gpu-memory",
        "384MiB",
        "--tune",
        "advice=none",
        "--stats",
        "s.json",
    )
    result = deepum(
        "run", *flags, "--", sys.executable, ROOT / "examples" / "dlrm_like.py", *small, timeout=300
    )
    assert result.returncode == 0, result.stderr
    statistics = json.loads((tmp_path / "s.json").read_text())
    assert statistics["bytes_prefetched"] > 0
    assert statistics["prefetch_accuracy"] < 1


def test_tables_of_which_few_rows_are_used_stay_on_the_host(deepum: Deepum, tmp_path: Path) -> None:
    script = (
        sys.executable,
        ROOT / "examples" / "dlrm_like.py",
        "--tables",
        6,
        "--rows",
        200_000,
        "--batch",
        64,
        "--steps",
        6,
    )
    by_advice = {}
    for advice in ("none", "remote"):
        flags = (
            "--device",
            "sim",
            "--gpu-memory",
            "384MiB",
            "--tune",
            f"advice={advice}",
            "--stats",
            "s.json",
        )
        result = deepum("run", *flags, "--", *script, timeout=300)
        assert result.returncode == 0, result.stderr
        by_advice[advice] = json.loads((tmp_path / "s.json").read_text())
    assert by_advice["none"]["peak_remote_bytes"] == 0 < by_advice["remote"]["peak_remote_bytes"]
    assert by_advice["remote"]["bytes_h2d"] < 0.5 * by_advice["none"]["bytes_h2d"]
    assert by_advice["remote"]["bytes_d2h"] < 0.5 * by_advice["none"]["bytes_d2h"]
    assert by_advice["remote"]["gpu_time_s"] < 0.5 * by_advice["none"]["gpu_time_s"]


def test_numba_compiles_and_launches(deepum: Deepum, tmp_path: Path) -> None:
    needed("numba.cuda")
    flags = ("--device", "sim", "--gpu-memory", "128MiB", "--stats", "s.json")
    arguments = ("--elements", 8 << 20, "--rounds", 6)
    result = deepum(
        "run",
        *flags,
        "--",
        sys.executable,
        ROOT / "examples" / "numba_saxpy.py",
        *arguments,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("round ") == 6
    assert json.loads((tmp_path / "s.json").read_text())["kernels"] == 24


def test_dropping_dead_blocks_moves_less_and_loses_nothing(deepum: Deepum, tmp_path: Path) -> None:
    script = (sys.executable, ROOT / "examples" / "train_gpt2.py", "--batch", 2, "--steps", 4)
    by_drop = {}
    for drop in (0, 1):
        flags = (
            "--device",
            "sim",
            "--gpu-memory",
            "2GiB",
            "--tune",
            f"invalidation={drop}",
            "--stats",
            "s.json",
        )
        result = deepum("run", *flags, "--", *script, timeout=300)
        assert result.returncode == 0, result.stderr
        by_drop[drop] = json.loads((tmp_path / "s.json").read_text())
    assert by_drop[0]["bytes_invalidated"] == 0 < by_drop[1]["bytes_invalidated"]
    assert by_drop[1]["bytes_d2h"] < 0.75 * by_drop[0]["bytes_d2h"]
    assert by_drop[1]["bytes_h2d"] < 0.75 * by_drop[0]["bytes_h2d"]
    assert by_drop[1]["gpu_time_s"] < by_drop[0]["gpu_time_s"]


def test_steps_are_counted(deepum: Deepum, tmp_path: Path) -> None:
    """Small tensors lie in other places in each of them."""
    flags = ("--device", "sim", "--gpu-memory", "2GiB", "--stats", "s.json")
    script = (sys.executable, ROOT / "examples" / "train_gpt2.py", "--batch", 2, "--steps", 7)
    result = deepum("run", *flags, "--", *script, timeout=300)
    assert result.returncode == 0, result.stderr
    statistics = json.loads((tmp_path / "s.json").read_text())
    assert statistics["iterations"] in (5, 6)  # the first is another
    assert 0.9 < statistics["iteration_launches"] / statistics["last_step"]["kernels"] < 1.2
    assert statistics["steady_step"]["iterations"] == pytest.approx(1, abs=0.2)
    step = f"{statistics['steady_step']['s'] * 1e3:.1f} ms"
    assert f"deepum: a step takes {step} (the mean of" in result.stderr
    assert "doubtful" not in result.stderr


def test_each_rank_of_torchrun_is_a_session_of_its_own(deepum: Deepum, tmp_path: Path) -> None:
    """Two ranks on one card, each with more memory than the half of it, gradients over gloo."""
    torchrun = (
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        2,
    )
    script = (
        ROOT / "examples" / "train_ddp.py",
        "--layers",
        6,
        "--width",
        1024,
        "--batch",
        64,
        "--steps",
        4,
    )
    result = deepum(
        "run",
        "--device",
        "sim",
        "--gpu-memory",
        "96MiB",
        "--stats",
        "s.json",
        "--",
        *torchrun,
        *script,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    for rank in (0, 1):
        assert [
            line.rpartition(": ")[0]
            for line in result.stdout.splitlines()
            if line.startswith(f"rank {rank} ")
        ] == [f"rank {rank} on cuda:0, step {step}" for step in range(1, 5)]
    statistics = json.loads((tmp_path / "s.json").read_text())
    ranks = [process for process in statistics["processes"] if process["session"] is not None]
    assert len(ranks) == 2
    assert all(
        rank["simulated"]["kernels"] > 0 and rank["session"]["core"]["bytes_evicted"] > 0
        for rank in ranks
    )


def test_a_program_that_waits_at_every_second_step_has_doubtful_steps(
    deepum: Deepum, tmp_path: Path
) -> None:
    """As a Trainer that logs every second step: from wait to wait are two steps."""
    (tmp_path / "train.py").write_text(
        "import torch\n"
        "model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(30))).cuda()\n"
        "optimizer = torch.optim.Adam(model.parameters())\n"
        "batch = torch.randn(256, 512).cuda()\n"
        "for step in range(16):\n"
        "    model(batch).square().mean().backward()\n"
        "    optimizer.step()\n"
        "    optimizer.zero_grad()\n"
        "    if step % 2:\n"
        "        torch.cuda.synchronize()\n"
    )
    flags = ("--device", "sim", "--gpu-memory", "64MiB", "--stats", "s.json")
    result = deepum("run", *flags, "--", sys.executable, "train.py", timeout=300)
    assert result.returncode == 0, result.stderr
    step = json.loads((tmp_path / "s.json").read_text())["steady_step"]
    assert step["iterations"] == pytest.approx(2, abs=0.3)
    message = next(line for line in result.stderr.splitlines() if "doubtful" in line)
    assert "waits once in 2 iterations of its launches" in message
    assert f"one may be {step['s'] / 2 * 1e3:.1f} ms" in message
