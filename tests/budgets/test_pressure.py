"""PyTorch with more memory than it may occupy, and with discards: no launch uses what was dropped,
and residency keeps the budget.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from budget_tools import MIB, SOFT, Ran

pytestmark = pytest.mark.torch
# Activations, gradients and the optimizer's states of 8 weights of 16 MiB. Each weight is stepped
# by itself, so that no launch names more than four tensors: none alone exceeds the budget.
TRAINING = """
import torch
model = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(8))).cuda()
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
x = torch.randn(2048, 2048, device="cuda")
for step in range(6):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
    torch.cuda.synchronize()
tell()
"""


def test_discards_never_hit_what_is_used_and_residency_keeps_to_the_card(
    python: Callable[..., Ran],
) -> None:
    ran = python(["--gpu-memory", "384MiB"], TRAINING, env={"DEEPUM_INVALIDATION": "1"})
    assert ran.simulated["peak_managed_bytes"] > 1.5 * 384 * MIB
    assert ran.simulated["bytes_discarded"] > 100 * MIB
    assert ran.simulated["discarded_uses"] == 0
    assert ran.statistics["launches_over_capacity"] == 0
    assert ran.simulated["peak_resident_bytes"] <= 384 * MIB
    assert ran.statistics["budget_overshoot_bytes"] == 0
    assert ran.statistics["warnings"] == []


def test_below_a_budget_what_exceeds_it_was_discarded_and_is_the_drivers_to_take(
    python: Callable[..., Ran],
) -> None:
    ran = python(["--gpu-memory", "384MiB"], TRAINING, env=SOFT | {"DEEPUM_INVALIDATION": "1"})
    core = ran.statistics["processes"][0]["session"]["core"]
    assert core["bytes_invalidated"] > 100 * MIB
    assert core["peak_resident_bytes"] <= 384 * MIB < ran.simulated["peak_resident_bytes"]
    assert ran.simulated["peak_resident_bytes"] < 1.5 * 384 * MIB
    assert ran.simulated["discarded_uses"] == 0
    assert ran.statistics["launches_over_capacity"] == 0
    assert ran.statistics["warnings"] == []


# Fused cells write four gates for each of their threads, which the simulated GPU cannot read off
# their arguments; products read all of it.
RECURRENT = """
import torch
model = torch.nn.LSTM(1024, 1024, 4, batch_first=True).cuda()
optimizer = torch.optim.Adam(model.parameters())
x = torch.randn(64, 64, 1024, device="cuda")
for step in range(3):
    optimizer.zero_grad()
    model(x)[0].square().mean().backward()
    optimizer.step()
    torch.cuda.synchronize()
tell()
"""


def test_a_kernel_that_writes_more_than_its_threads_tell_is_no_false_alarm(
    python: Callable[..., Ran],
) -> None:
    ran = python(["--gpu-memory", "300MiB", "--tune", "invalidation=1"], RECURRENT)
    assert ran.simulated["bytes_discarded"] > 100 * MIB
    assert "touched" not in ran.err


# Memory that is read and that no kernel known to the simulated GPU has written: by the generator of
# random numbers, by nobody at all.
UNWRITTEN = """
import torch
model = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(8))).cuda()
optimizer = torch.optim.SGD(model.parameters())
for step in range(4):
    for make in (torch.randn, torch.empty):
        optimizer.zero_grad()
        model(make(2048, 2048, device="cuda")).square().mean().backward()
        optimizer.step()
torch.cuda.synchronize()
tell()
"""


def test_reading_what_nobody_is_known_to_have_written_stops_no_program(
    python: Callable[..., Ran],
) -> None:
    ran = python(["--gpu-memory", "256MiB", "--tune", "invalidation=1"], UNWRITTEN)
    assert ran.simulated["bytes_discarded"] > 100 * MIB
    assert ran.simulated["discarded_uses"] > 0
    assert ran.simulated["discarded_uses_sure"] == 0
    (warning,) = ran.statistics["warnings"]
    assert "launches read memory that was discarded" in warning
