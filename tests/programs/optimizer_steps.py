"""Two steps of AdamW, foreach kernels or, with the argument `fused`, the fused one; each optimizer
step is waited for.
"""

import sys

import torch

# 30 weights of 24 MiB: 12 UM blocks and 96 chunks of 65536 elements each.
shapes = [(2048, 3072), (3072, 2048)] * 15
model = torch.nn.Sequential(*(torch.nn.Linear(*shape, bias=False) for shape in shapes)).cuda()
optimizer = torch.optim.AdamW(
    model.parameters(), foreach="fused" not in sys.argv, fused="fused" in sys.argv
)
for _step in range(2):
    model(torch.randn(16, 2048, device="cuda")).square().mean().backward()
    torch.cuda.synchronize()
    optimizer.step()
    torch.cuda.synchronize()
    optimizer.zero_grad()
