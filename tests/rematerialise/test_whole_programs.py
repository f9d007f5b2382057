"""`deepum run --remat`: programs that know nothing of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deepum.launcher.launch import plan

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.torch
Deepum = Callable[..., subprocess.CompletedProcess[str]]

TRAIN = """
import sys, threading
import torch
from torch import nn

device = sys.argv[1]
torch.set_num_threads(1)
torch.manual_seed(0)
layers = [nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Dropout(0.1)) for _ in range(10)]
model = nn.Sequential(*layers).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(1024, 256, device=device)
for _ in range(2):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
held = [x * i for i in range(40)]
found = []
thread = threading.Thread(target=lambda: found.append(held[0].sum().item() + held[3].sum().item()))
thread.start()
thread.join()
print(found)
if device == "cuda":
    print("peak", torch.cuda.max_memory_allocated())
"""


ACTIVATIONS = """
import sys
import torch
from torch.nn import functional

rows, steps = int(sys.argv[1]), int(sys.argv[2])
weights = [torch.nn.Parameter(torch.randn(512, 512, device="cuda")) for _ in range(4)]
optimizer = torch.optim.SGD(weights, lr=0.1)
for _ in range(steps):
    x = torch.randn(rows, 512, device="cuda")
    for weight in weights:
        x = x @ weight
        for _ in range(4):
            x = functional.gelu(x)
    x.square().mean().backward()
    if len(sys.argv) > 3:
        for weight in weights:
            weight.data.sub_(weight.grad)
    else:
        optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture
def activations(tmp_path: Path) -> str:
    """A program whose memory is activations, cheap ones: 320 MiB with 8192 rows."""
    path = tmp_path / "activations.py"
    path.write_text(ACTIVATIONS, encoding="utf-8")
    return str(path)


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text(TRAIN, encoding="utf-8")
    return str(path)


def test_a_program_on_the_cpu_computes_the_same_in_all_its_threads(
    deepum: Deepum, program: str, tmp_path: Path
) -> None:
    plain = subprocess.run(
        [sys.executable, program, "cpu"], capture_output=True, text=True, check=True
    )
    result = deepum(
        *("run", "--device", "cpu", "--remat", "16MiB", "--stats", "stats.json", "--"),
        *(sys.executable, program, "cpu"),
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == plain.stdout
    assert "tensors evicted" in result.stderr
    (report,) = json.loads((tmp_path / "stats.json").read_text())["remat"]
    assert report["evictions"] > 0 and report["recomputed"] > 0
    assert report["peak_bytes"] <= report["budget_bytes"] == 16 << 20


def test_a_program_on_the_simulated_gpu_stays_within_the_budget(
    deepum: Deepum, program: str
) -> None:
    def peak(*options: str) -> int:
        result = deepum("run", "--device", "sim", *options, "--", sys.executable, program, "cuda")
        assert result.returncode == 0, result.stderr
        return int(result.stdout.split()[-1])

    # A workspace of cuBLAS is asked for when the first product runs, and is not foreseen.
    assert peak("--remat", "32MiB") <= 42 << 20 < peak()


def _auto(deepum: Deepum, tmp_path: Path, *program: object) -> tuple[dict[str, Any], str]:
    """What `--remat auto` says of a program on a card of 256 MiB, and the summary."""
    result = deepum(
        *("run", "--device", "sim:rtx4090", "--gpu-memory", "256MiB", "--remat", "auto"),
        *("--stats", "stats.json", "--", sys.executable, *program),
        timeout=400,
    )
    assert result.returncode == 0, result.stderr
    (report,) = json.loads((tmp_path / "stats.json").read_text())["remat"]
    return report, result.stderr


def test_what_is_cheaper_to_compute_than_to_move_is_computed_again(
    deepum: Deepum, activations: str, tmp_path: Path
) -> None:
    report, summary = _auto(deepum, tmp_path, activations, 8192, 60)
    choice = report["choice"]
    assert choice["outcome"] == "recompute" and 0 < choice["decided"] < choice["steps"] == 59
    assert report["evictions"] > 0 and report["recomputed"] > 0
    alone, *others = choice["trials"]
    assert alone["price_ns"] == 0.0 and min(one["ms"] for one in others) < alone["ms"]
    assert choice["card_bytes"] == 256 << 20 < choice["used_bytes"]
    assert 0.03 < choice["link_ns"] < 0.05  # 25 GB/s
    assert "remat: computing again was chosen for up to" in summary


def test_where_all_fits_the_card_nothing_is_tried(
    deepum: Deepum, activations: str, tmp_path: Path
) -> None:
    report, summary = _auto(deepum, tmp_path, activations, 1024, 12)
    assert report["choice"]["outcome"] == "fits" and report["choice"]["trials"] == []
    assert report["operators"] == report["evictions"] == 0
    assert "it fits, nothing was tried" in summary


def test_without_an_optimizer_of_pytorchs_all_is_left_to_moving(
    deepum: Deepum, activations: str, tmp_path: Path
) -> None:
    report, summary = _auto(deepum, tmp_path, activations, 8192, 5, "by hand")
    assert report["operators"] == report["choice"]["steps"] == 0
    assert "no step of a training was seen: all was left to moving" in summary


def test_auto_is_refused_where_memory_is_not_unified(deepum: Deepum, activations: str) -> None:
    program = ("--", sys.executable, activations, 1024, 2)
    result = deepum("run", "--device", "cpu", "--remat", "auto", *program)
    assert result.returncode == 2
    assert "--remat auto: is for a GPU; give a size, as in --remat 8GiB" in result.stderr
    result = deepum(
        *("run", "--device", "sim", "--remat", "auto", *program), env={"DEEPUM_DISABLE": "1"}
    )
    assert result.returncode == 2
    assert "DEEPUM_DISABLE is set; unset it, or give a size" in result.stderr
    result = deepum("run", "--device", "sim", "--remat", "some", *program)
    assert result.returncode == 2
    assert "'some' is not a size; write one like 8GiB or 512MiB, or auto" in result.stderr


def test_a_budget_that_is_too_small_ends_the_program_with_the_reason(
    deepum: Deepum, program: str
) -> None:
    result = deepum(
        *("run", "--device", "cpu", "--remat", "3MiB", "--", sys.executable, program, "cpu")
    )
    assert result.returncode == 1
    assert "RematOutOfMemoryError: deepum.remat: the budget of 3.0 MiB is" in result.stderr
    assert "parameters 2.5 MiB" in result.stderr


def test_another_sitecustomize_is_read_as_ever(deepum: Deepum, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("print('theirs')", encoding="utf-8")
    result = deepum(
        *("run", "--device", "cpu", "--remat", "1GiB", "--"),
        *(sys.executable, "-c", "import sitecustomize; print(sitecustomize.__file__)"),
        env={"PYTHONPATH": f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    )
    found = result.stdout.split()  # deepum itself, which is Python's as well, reads it too
    assert set(found[:-1]) == {"theirs"}, result.stderr
    assert found[-1] == str(folder / "sitecustomize.py")


def test_the_device_cpu_is_for_remat_alone(deepum: Deepum) -> None:
    result = deepum("run", "--device", "cpu", "--", "true")
    assert result.returncode == 2
    assert "device cpu: is for --remat SIZE" in result.stderr
    result = deepum(
        "run", "--device", "cpu", "--remat", "1GiB", "--gpu-memory", "1GiB", "--", "true"
    )
    assert result.returncode == 2
    assert "gpu_memory: is for a GPU" in result.stderr


def test_nothing_is_preloaded_on_the_cpu() -> None:
    from deepum.configuration.resolve import resolve

    values = resolve({"device": "cpu", "remat": "1GiB"}, {}, None)
    made = plan([sys.executable], values, dict(os.environ)).environment
    assert made["DEEPUM_REMAT_DEVICE"] == "cpu" and "DEEPUM_DAEMON" not in made
    assert "libdeepum" not in made.get("LD_PRELOAD", "")


def test_the_example_prints_equal_losses() -> None:
    result = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "remat_cpu.py")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert result.returncode == 0, result.stderr
    without, within, summary = result.stdout.splitlines()
    assert without.partition(": ")[2].strip() == within.partition(": ")[2].strip() != ""
    assert " evicted" in summary
