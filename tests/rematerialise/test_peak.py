"""The budget holds as PyTorch's CPU allocator sees it, what operators take while they run included:
its blocks are counted by a library of the test's own (allocations.c).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_name("allocations.c")
pytestmark = pytest.mark.torch

PROGRAM = """
import ctypes, gc, json, sys
import torch
from torch import nn
import deepum

library = ctypes.CDLL(sys.argv[1])
for name in ("allocations_now", "allocations_peak"):
    getattr(library, name).restype = ctypes.c_long
with open("/proc/self/maps") as maps:
    (code,) = [line.split()[0] for line in maps if "libc10.so" in line and " r-xp " in line]
begin, end = (int(one, 16) for one in code.split("-"))
library.allocations_from(ctypes.c_void_p(begin), ctypes.c_void_p(end))
torch.set_num_threads(1)

def convolutions():
    layers = [nn.Conv2d(3, 16, 3, padding=1)]
    for _ in range(8):
        layers += [nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.Dropout(0.1), nn.Conv2d(16, 16, 3, padding=1)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
    x, y = torch.randn(16, 3, 48, 48), torch.randint(10, (16,))
    return model, lambda: nn.functional.cross_entropy(model(x), y)

def transformer():
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    model = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
    x = torch.randn(16, 64, 128)
    return model, lambda: model(x).square().mean()

def train(build):
    torch.manual_seed(0)
    model, loss_of = build()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

found = []
for build in (convolutions, transformer):
    library.allocations_reset()
    train(build)
    gc.collect()
    plain = library.allocations_peak()
    for fraction in (0.9, 0.7, 0.5):
        gc.collect()
        library.allocations_reset()
        budget = int(plain * fraction)
        try:
            with deepum.remat(budget, device="cpu") as remat:
                train(build)
                peak = library.allocations_peak()
        except torch.OutOfMemoryError as error:
            found.append([build.__name__, fraction, str(error)])
            continue
        found.append([build.__name__, fraction, peak - budget, remat.statistics().evictions])
print(json.dumps(found))
"""
_SPARE = 1 << 20  # what blocks are rounded up by, and a first call that was not foreseen


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> list[list[object]]:
    library = tmp_path_factory.mktemp("allocations") / "liballocations.so"
    subprocess.run(
        ["gcc", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", library, SOURCE],
        check=True,
    )
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(library)],
        env={**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    found: list[list[object]] = json.loads(result.stdout.splitlines()[-1])
    return found


def test_the_allocator_never_has_more_than_the_budget(measured: list[list[object]]) -> None:
    over = [one for one in measured if isinstance(one[2], int) and one[2] > _SPARE]
    assert not over


def test_budgets_are_small_enough_to_matter(measured: list[list[object]]) -> None:
    enough = [one for one in measured if len(one) == 4]
    assert len(enough) >= 4 and all(int(str(one[3])) > 0 for one in enough)
    assert all("deepum.remat: the budget of" in str(one[2]) for one in measured if len(one) == 3)
