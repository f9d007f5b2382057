"""torch.compile of a transformer's training step: `default`, `reduce-overhead` (CUDA graphs),
`dynamic` (another length each step).
"""

from __future__ import annotations

import sys

import torch
from steps import repeat
from torch import nn
from torch.nn import functional

WIDTH, LAYERS, WORDS, BATCH, LENGTH = 768, 6, 8192, 8, 512


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = (
            self.attention(self.before(x))
            .view(batch, length, 3, WIDTH // 64, 64)
            .permute(2, 0, 3, 1, 4)
        )
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(self.after(x))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits = self.head(self.blocks(self.words(tokens)))
        return functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def main(mode: str) -> None:
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    loss_of = (
        torch.compile(model, dynamic=True) if mode == "dynamic" else torch.compile(model, mode=mode)
    )
    lengths = iter(LENGTH - 64 * (i % 3) if mode == "dynamic" else LENGTH for i in range(100))

    def step() -> None:
        torch.compiler.cudagraph_mark_step_begin()
        tokens = torch.randint(WORDS, (BATCH, next(lengths)), device="cuda")
        optimizer.zero_grad()
        loss_of(tokens).backward()
        optimizer.step()

    repeat(step, 8)


if __name__ == "__main__":
    main(sys.argv[1])
