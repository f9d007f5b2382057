"""Triton's kernels, launched by hand and made by torch.compile. The simulated GPU runs no PTX, so
nothing is said of their values: their launches are seen and have the same identities in every run,
and the memory that they name is foreseen and fetched.
"""

from __future__ import annotations

import shutil
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from finished_run import Ran

from deepum.core import EventLog, Execute, events

Run = Callable[..., Ran]
pytestmark = [
    pytest.mark.torch,
    # Triton compiles its launcher, and torch.compile its wrapper.
    pytest.mark.skipif(
        not shutil.which("gcc") or not (Path(sysconfig.get_path("include")) / "Python.h").exists(),
        reason="Triton needs a C compiler and Python's headers",
    ),
]
BY_HAND = """
import torch, triton, triton.language as tl

@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

n = 4 << 20
tensors = [torch.empty(n, device="cuda") for _ in range(12)]
for _ in range(8):
    for i in range(12):
        add_kernel[(triton.cdiv(n, 1024),)](tensors[i], tensors[(i + 1) % 12], tensors[(i + 2) % 12], n, BLOCK=1024)
    torch.cuda.synchronize()
"""
COMPILED = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(768, 3072), nn.GELU(), nn.Linear(3072, 768), nn.LayerNorm(768))]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=False)
x = torch.randn(512, 768, device="cuda")

@torch.compile
def loss(x):
    return model(x).square().mean()

for _ in range(8):
    optimizer.zero_grad()
    loss(x).backward()
    optimizer.step()
    torch.cuda.synchronize()
"""

MODES = """
import torch
from torch import nn
model = nn.Sequential(*[m for _ in range(8) for m in (nn.Linear(768, 1536), nn.GELU(), nn.Linear(1536, 768))]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=False)
for options, sizes in (({"mode": "reduce-overhead"}, [256]), ({"dynamic": True}, [256, 192, 320])):
    compiled = torch.compile(model, **options)
    for i in range(6):
        torch.compiler.cudagraph_mark_step_begin()
        optimizer.zero_grad()
        compiled(torch.randn(sizes[i % len(sizes)], 768, device="cuda")).square().mean().backward()
        optimizer.step()
    torch.cuda.synchronize()
    torch.compiler.reset()
"""


@pytest.fixture
def caches(tmp_path: Path) -> dict[str, str]:
    """Of this test alone: Triton's, and that of torch.compile, which compiles in the process itself
    here.
    """
    return {
        "TRITON_CACHE_DIR": str(tmp_path / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }


def launches(log: Path) -> list[Execute]:
    return [
        event
        for event in events(EventLog.read(log).records)
        if isinstance(event, Execute) and event.flags == 0
    ]


def test_a_kernel_that_is_launched_by_hand(
    python: Run, caches: dict[str, str], tmp_path: Path
) -> None:
    options = ["--gpu-memory", "128MiB", "--record", str(tmp_path / "log")]
    ran = python(options, BY_HAND, env=caches)
    assert (ran.statistics["kernels"], ran.statistics["warnings"]) == (8 * 12, [])
    log_launches = launches(tmp_path / "log")
    # Each names three tensors of 16 MiB, of 12 different ones.
    assert len(log_launches) == 8 * 12 and all(
        sum(run.count for run in launch.unknown) == 3 * 8 for launch in log_launches
    )
    assert ran.between_waits("faults", 4) == [0] * 4
    assert ran.statistics["bytes_prefetched"] > 4 * 128 << 20
    first = (tmp_path / "log").read_bytes()
    python(options, BY_HAND, env=caches)  # and not compiled anew
    assert (tmp_path / "log").read_bytes() == first


def test_a_compiled_training_step(python: Run, caches: dict[str, str], tmp_path: Path) -> None:
    options = ["--gpu-memory", "128MiB", "--record", str(tmp_path / "log")]
    # Warm: the second run finds the kernels compiled and tuned; both make the same steps.
    steps = []
    for _ in range(2):
        ran = python(options, COMPILED, env=caches)
        assert ran.statistics["warnings"] == []
        assert ran.statistics["launches_over_capacity"] == 0
        assert sum(ran.between_waits("faults", 3)) == 0
        assert ran.statistics["bytes_prefetched"] > 8 * 20 << 20
        assert ran.statistics["prefetch_accuracy"] > 0.8
        steps.append(launches(tmp_path / "log"))
    cold, warm = (
        [launch.execution_hash for launch in launches_of_step] for launches_of_step in steps
    )
    step = len(warm) // 8
    assert warm[-step:] == cold[-step:]
    assert set(warm) <= set(cold)
    # Of the forward and the backward pass.
    assert len(list((tmp_path / "triton").rglob("triton_*.cubin"))) >= 6


def test_compiled_with_graphs_and_for_any_shape(python: Run, caches: dict[str, str]) -> None:
    ran = python(["--gpu-memory", "96MiB"], MODES, env=caches)
    assert ran.statistics["peak_allocated_bytes"] > 1.3 * ran.statistics["gpu_memory_bytes"]
    assert (
        ran.simulated["discarded_uses_sure"],
        ran.simulated["not_simulated"],
        ran.simulated["unparsed_kernels"],
    ) == (0, [], [])
    assert any(name.startswith("triton_") for name in ran.simulated["general_kernels"])
