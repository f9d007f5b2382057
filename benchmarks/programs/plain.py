"""Plain PyTorch: `linear`, SGD on linear layers with torch.randn in the loop; `conv SIZE`,
convolutions with batch norm, images of SIZE.
"""

from __future__ import annotations

import sys
from itertools import pairwise

import torch
from steps import repeat
from torch import nn


def linear(steps: int = 6) -> None:
    model = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(12)], nn.Linear(4096, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        inputs, labels = (
            torch.randn(4096, 4096, device="cuda"),
            torch.randint(10, (4096,), device="cuda"),
        )
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    repeat(step, steps)


def conv(size: int, steps: int = 5) -> None:
    widths = [3, 64, 128, 128, 256, 256]
    layers = [
        layer
        for i, (before, after) in enumerate(pairwise(widths))
        for layer in (
            nn.Conv2d(before, after, 3, 1 + i % 2, 1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
        )
    ]
    model = nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 1000)
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batch = 64 * 64 * 64 // (size * size)

    def step() -> None:
        inputs, labels = (
            torch.randn(batch, 3, size, size, device="cuda"),
            torch.randint(1000, (batch,), device="cuda"),
        )
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    repeat(step, steps)


if __name__ == "__main__":
    if sys.argv[1] == "linear":
        linear()
    else:
        conv(int(sys.argv[2]))
