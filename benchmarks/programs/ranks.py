"""Ranks of torchrun over gloo, each on a GPU: `ddp`, DistributedDataParallel; `fsdp`, FSDP2's
fully_shard, layer by layer.
"""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from steps import repeat
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

WIDTH = 1024


def main(kind: str) -> None:
    dist.init_process_group("gloo")
    torch.cuda.set_device(0)
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(WIDTH, 16, 4 * WIDTH, batch_first=True), 8
    )
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), encoder, nn.Linear(WIDTH, WIDTH)).cuda()
    if kind == "ddp":
        model = DistributedDataParallel(model)
    else:
        for layer in encoder.layers:
            fully_shard(layer)
        fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad()
        model(torch.randn(8, 256, WIDTH, device="cuda")).square().mean().backward()
        optimizer.step()

    repeat(step, 5)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
