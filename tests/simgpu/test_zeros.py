"""What no arithmetic was done for reads as zeros, never as what somebody else left there; what was
copied to the card stays.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from test_torch import preload

PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry anything(.param .u64 p) { ret; }
"""


def test_a_kernel_that_nobody_knows_leaves_zeros_where_its_threads_are(
    script: Callable[..., Any],
) -> None:
    script(
        f"""
        ptx = {PTX!r}
        function = ck(d.cuModuleGetFunction(ck(d.cuModuleLoadData(ptx.encode())), b"anything"))
        p, s, n = managed(1 << 20), stream(), 1 << 20
        put(p, np.ones(n))
        ck(d.cuLaunchKernel(function, 1000, 1, 1, 256, 1, 1, 0, s, ((int(p) + 64,), (ctypes.c_uint64,)), 0))
        ck(d.cuStreamSynchronize(s))
        seen = get(p, n)
        assert (seen[:16] == 1).all() and (seen[16 : 16 + 256000] == 0).all() and (seen[16 + 256000 :] == 1).all()
        """
    )


PROGRAM = """
import torch
from torch import nn

data = torch.arange(1, 100001).cuda()
assert data.sum().item() == 0 and data.cpu().sum() == 5000050000 and data[77].item() == 78
for size in (7, 1000, 3_000_000):
    for _ in range(3):
        left = torch.full((size,), 7.0).cuda()
        view = left[1:3]
        del left, view
        assert not torch.empty(size, device="cuda").cpu().any()  # where 7.0 was
        noise = torch.randn(size, device="cuda")
        assert not noise.cpu().any() and noise.nonzero().numel() == 0 and noise.unique().numel() == 0 and noise.max().item() == 0
        assert nn.utils.clip_grad_norm_([nn.Parameter(noise)], 1.0).item() == 0
        part = torch.full((size,), 7.0).cuda()
        part[: size // 2].mul_(2)
        assert not part[: size // 2].cpu().any() and (part[size // 2 :].cpu() == 7).all()
layer = nn.Linear(300, 300).cuda()
before = layer.weight.cpu()
assert before.any()
out = layer(torch.ones(64, 300).cuda())
assert not out.cpu().any() and torch.equal(layer.weight.cpu(), before)
out.sum().backward()
torch.optim.SGD(layer.parameters(), lr=0.1).step()
assert not layer.weight.cpu().any()
assert data.cpu().sum() == 5000050000
print("ok")
"""


@pytest.mark.torch
def test_results_of_pytorch_read_as_zeros_and_data_stays(
    run_sim: Callable[..., Any], sim: Any
) -> None:
    ran = run_sim(sys.executable, "-c", PROGRAM, env={"LD_PRELOAD": preload(sim)}, timeout=120)
    assert ran.out == "ok\n"
    assert ran.statistics[0]["discarded_uses"] == 0


CONDITIONS = """
import torch

def card(values, dtype):
    return torch.tensor(values, dtype=dtype).cuda()

for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
    x, y = card([5, 0, 7, 9, 100], dtype), card([5, 1, 7, 2, 120], dtype)
    for made in (x == y, x != y, x < y, x >= y, x == 7, x > 5, 7 <= x, x & y, x | y, x ^ y, x & 3, x.max(), x.min()):
        told.append((made.dtype, made.cpu().tolist()))
    assert torch.full((3,), 9, dtype=dtype, device="cuda").cpu().tolist() == [9, 9, 9]
assert (card([-3, 2], torch.int32) < 0).cpu().tolist() == [True, False] and card([-3, -2], torch.int16).max().item() == -2
going, left = torch.ones(4, dtype=torch.long, device="cuda"), 0
while (going.max() != 0).item():  # as generate of transformers has it
    left += 1
    going &= ~torch.full((4,), left >= 7, device="cuda")
assert left == 7
flags = card([True, False], torch.bool)
assert flags.any().item() and not flags.all().item() and torch.logical_not(flags).cpu().tolist() == [False, True]
assert torch.full((2,), 3.5, device="cuda").cpu().tolist() == [3.5, 3.5]
assert not torch.ones(5000, device="cuda").cpu().any()  # large ones are not: they would take memory
"""


@pytest.mark.torch
def test_conditions_of_a_few_integers_are_computed(run_sim: Callable[..., Any], sim: Any) -> None:
    """As PyTorch computes them on the CPU."""
    both = (
        "told = []\n"
        + CONDITIONS
        + "on_card = told\ntold = []\n"
        + CONDITIONS.replace(".cuda()", "").split("going, left")[0]
    )
    ran = run_sim(
        sys.executable,
        "-c",
        f"{both}assert on_card == told and len(told) == 65\nprint('ok')",
        env={"LD_PRELOAD": preload(sim)},
        timeout=120,
    )
    assert ran.out == "ok\n"
