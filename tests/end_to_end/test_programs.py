"""Programs as people write them, with less memory than they need and default settings: they end,
and nothing that they need is lost. Larger ones, and how fast they are: benchmarks/programs.py.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch
Deepum = Callable[..., "subprocess.CompletedProcess[str]"]

# Inputs are made on the card in each step; layers are of sizes between which im2col, pooling and
# batch norm take other kernels.
IMAGES = """
import torch
from torch import nn

def layers(size):
    conv = nn.Conv2d(3, 32, 3, 1, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64)
    return nn.Sequential(*conv, nn.AdaptiveAvgPool2d(1), nn.Flatten(), *[nn.Linear(64, 64) for _ in range(4)], nn.Dropout(0.1)).cuda()

for size, batch in ((20, 512), (64, 48), (150, 10)):
    model = layers(size)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(5):
        optimizer.zero_grad()
        images, labels = torch.randn(batch, 3, size, size, device="cuda"), torch.randint(64, (batch,), device="cuda")
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
    print(size, loss.item())
print(torch.cuda.max_memory_allocated())
"""

GENERATE = """
import torch
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config(n_layer=4, n_embd=512, n_head=8, vocab_size=20000)).cuda().eval()
prompt = torch.randint(20000, (2, 8), device="cuda")
for options in ({"max_new_tokens": 16}, {}):
    print(model.generate(prompt, attention_mask=torch.ones_like(prompt), pad_token_id=0, **options).shape[1] - 8)
"""

FSDP2 = """
import os, torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
model = nn.Sequential(*[nn.Linear(1536, 1536) for _ in range(8)]).cuda()
for layer in model:
    fully_shard(layer)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    optimizer.zero_grad()
    model(torch.randn(512, 1536, device="cuda")).square().mean().backward()
    optimizer.step()
torch.cuda.synchronize()
print(f"rank {dist.get_rank()} ends\\n", end="")
dist.destroy_process_group()
"""


@pytest.fixture
def program(deepum: Deepum, tmp_path: Path) -> Callable[..., tuple[str, dict[str, Any]]]:
    """Runs a script under `deepum run`, on a card of so much memory; its output, and the
    statistics.
    """

    def run(script: str, memory: str, *launcher: str) -> tuple[str, dict[str, Any]]:
        (tmp_path / "script.py").write_text(script)
        options = ("--device", "sim:v100-16gb", "--gpu-memory", memory, "--stats", "s.json")
        done = deepum("run", *options, "--", sys.executable, *launcher, "script.py", timeout=300)
        assert done.returncode == 0, done.stderr[-4000:]
        statistics: dict[str, Any] = json.loads((tmp_path / "s.json").read_text())
        assert statistics["peak_allocated_bytes"] > 1.3 * statistics["gpu_memory_bytes"]
        for process in statistics["processes"]:
            if (simulated := process["simulated"]) is not None:
                assert simulated["discarded_uses_sure"] == 0
                assert simulated["not_simulated"] == simulated["unparsed_kernels"] == []
        return done.stdout, statistics

    return run


def test_convolutions_with_random_inputs(
    program: Callable[..., tuple[str, dict[str, Any]]],
) -> None:
    _, statistics = program(IMAGES, "64MiB")
    assert statistics["bytes_evicted"] > statistics["gpu_memory_bytes"]
    assert statistics["processes"][0]["simulated"]["general_kernels"] == []
    assert statistics["warnings"] == []


def test_generate_makes_as_many_tokens_as_it_is_asked_for(
    program: Callable[..., tuple[str, dict[str, Any]]],
) -> None:
    """Whether it goes on it asks the card, after each token; 20 are its own limit."""
    out, statistics = program(GENERATE, "64MiB")
    exact, by_itself = map(int, out.split())
    assert exact == 16 and 12 <= by_itself <= 20  # with the prompt's 8, or without
    assert statistics["prefetch_coverage"] > 0.5


def test_fsdp2_over_gloo(program: Callable[..., tuple[str, dict[str, Any]]]) -> None:
    out, statistics = program(
        FSDP2, "64MiB", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"
    )
    assert sorted(line for line in out.splitlines() if line.startswith("rank")) == [
        "rank 0 ends",
        "rank 1 ends",
    ]
    assert sum(process["simulated"] is not None for process in statistics["processes"]) >= 2
