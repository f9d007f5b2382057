"""A training step captured with torch.cuda.CUDAGraph and replayed: prints the nodes of the graph by
type, then a line a replay.
"""

from __future__ import annotations

import sys
import time

import torch
from torch import nn
from torch.nn import functional


def main(replays: int) -> None:
    model = nn.Sequential(
        nn.Linear(256, 512), nn.ReLU(), nn.Dropout(0.1), nn.LayerNorm(512), nn.Linear(512, 10)
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
    x, y = torch.randn(64, 256).cuda(), torch.randint(0, 10, (64,)).cuda()

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=False)
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    # What PyTorch's documentation asks for: a few steps on another stream before the capture.
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    torch.cuda.synchronize()
    for _ in range(replays):
        x.copy_(torch.randn(64, 256))
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        print("replay", begin.elapsed_time(end))
    time.sleep(0.3)  # models.py says why


if __name__ == "__main__":
    main(int(sys.argv[1]))
