"""bitsandbytes: `adam8bit`, its optimizer of 8 bits; `nf4`, a frozen model of 4 bits with trained
norms.
"""

from __future__ import annotations

import sys

import bitsandbytes as bnb
import torch
from steps import repeat
from torch import nn

WIDTH, LAYERS = 2048, 16


def main(kind: str) -> None:
    make = nn.Linear if kind == "adam8bit" else bnb.nn.Linear4bit
    layers = [
        layer
        for _ in range(LAYERS)
        for layer in (
            make(WIDTH, 2 * WIDTH),
            nn.GELU(),
            make(2 * WIDTH, WIDTH),
            nn.LayerNorm(WIDTH),
        )
    ]
    model = nn.Sequential(*layers).cuda()
    optimizer = bnb.optim.Adam8bit(
        [parameter for parameter in model.parameters() if parameter.requires_grad], lr=1e-4
    )

    def step() -> None:
        optimizer.zero_grad()
        model(torch.randn(2048, WIDTH, device="cuda")).square().mean().backward()
        optimizer.step()

    repeat(step, 6)


if __name__ == "__main__":
    main(sys.argv[1])
