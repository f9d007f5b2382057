"""A model that does not fit its budget, trained all the same: under deepum.remat, with the losses
of the training without. Needs PyTorch 2.12 or later and a CPU; takes a minute.

    python examples/remat_cpu.py
"""

from __future__ import annotations

import torch
from torch import nn

import deepum

BUDGET = "64MiB"


def network() -> nn.Module:
    blocks: list[nn.Module] = [nn.Conv2d(3, 32, 3, padding=1)]
    for _ in range(12):
        blocks += [nn.BatchNorm2d(32), nn.ReLU(), nn.Dropout(0.1), nn.Conv2d(32, 32, 3, padding=1)]
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


def train() -> list[float]:
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(4):
        images, classes = torch.randn(32, 3, 32, 32), torch.randint(10, (32,))
        loss = nn.functional.cross_entropy(model(images), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    with deepum.remat("1TiB") as roomy:
        expected = train()
    with deepum.remat(BUDGET) as remat:
        losses = train()
    without, tight = roomy.statistics(), remat.statistics()
    print("losses without:", expected)
    print("losses with:   ", losses)
    print(
        f"tensors take {without.peak_bytes >> 20} MiB at most without a budget, "
        f"{tight.peak_bytes >> 20} MiB with one of {BUDGET}: {tight.evictions} evicted, "
        f"{tight.recomputed} operators ran again, "
        f"{100 * tight.recomputed_seconds / tight.computed_seconds:.0f} % more computing"
    )
    if losses != expected:
        raise SystemExit("the losses differ")


if __name__ == "__main__":
    main()
