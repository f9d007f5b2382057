"""Four models to train, as GPT-2, BERT, ResNet and DLRM are built, in plain PyTorch: small enough
to be quick, large enough to move.

`stages` are run one after the other; activation checkpointing recomputes one at a time. All is made
on the GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

Batch = tuple[Any, torch.Tensor]


@dataclass
class Job:
    """What is trained: `batch(step)` gives inputs and labels, `loss` compares."""

    stages: nn.ModuleList
    batch: Callable[[], Batch]
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    optimizer: torch.optim.Optimizer
    checkpointed: bool = True  # whether recomputing stages makes sense


class _Tokens(nn.Module):
    def __init__(self, vocabulary: int, length: int, width: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(torch.zeros(length, width))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.words(tokens) + self.places


class _Layer(nn.Module):
    """A transformer's layer, with the norms before (GPT-2) or behind (BERT)."""

    def __init__(self, width: int, heads: int, causal: bool, dropout: float) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.shape
        q, k, v = (
            part.view(b, t, self.heads, c // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(c, dim=2)
        )
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.dropout(self.out(seen.transpose(1, 2).reshape(b, t, c)))

    def feed(self, x: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.narrow(functional.gelu(self.wide(x))))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.causal:
            x = x + self.attend(self.norms[0](x))
            return x + self.feed(self.norms[1](x))
        x = self.norms[0](x + self.attend(x))
        return self.norms[1](x + self.feed(x))


class _Head(nn.Module):
    def __init__(self, width: int, vocabulary: int) -> None:
        super().__init__()
        self.norm, self.project = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.project(self.norm(x)).flatten(0, 1)


def _transformer(
    layers: int, width: int, batch: int, length: int, vocabulary: int, causal: bool
) -> Job:
    body = [_Layer(width, width // 64, causal, 0.0 if causal else 0.1) for _ in range(layers)]
    stages = nn.ModuleList([_Tokens(vocabulary, length, width), *body, _Head(width, vocabulary)])

    def make() -> Batch:
        tokens = torch.randint(vocabulary, (batch, length))
        return tokens, tokens.roll(-1, dims=1).flatten()

    return Job(
        stages, make, functional.cross_entropy, torch.optim.AdamW(stages.parameters(), lr=1e-4)
    )


class _Bottleneck(nn.Module):
    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        outside = 4 * width
        self.convolutions = nn.ModuleList(
            (
                nn.Conv2d(inside, width, 1, bias=False),
                nn.Conv2d(width, width, 3, stride, 1, bias=False),
                nn.Conv2d(width, outside, 1, bias=False),
            )
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for channels in (width, width, outside))
        self.short = (
            nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
            )
            if inside != outside
            else nn.Identity()
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        for i, (convolution, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            y = norm(convolution(y))
            y = functional.relu(y + self.short(x) if i == 2 else y)
        return y


def _resnet(blocks: tuple[int, ...], batch: int, pixels: int) -> Job:
    stages: list[nn.Module] = [_stem()]
    inside = 64
    for group, count in enumerate(blocks):
        for i in range(count):
            stages.append(_Bottleneck(inside, 64 << group, 2 if group and not i else 1))
            inside = 256 << group
    # The mean by hand, likewise.
    stages.append(nn.Sequential(_Mean(), nn.Linear(inside, 1000)))
    made = nn.ModuleList(stages)

    def make() -> Batch:
        return torch.randn(batch, 3, pixels, pixels), torch.randint(1000, (batch,))

    # Batch normalisation's running statistics would be updated twice where stages are computed
    # twice.
    for module in made.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.track_running_stats = False
            module.running_mean = module.running_var = None
    return Job(
        made,
        make,
        functional.cross_entropy,
        torch.optim.SGD(made.parameters(), lr=1e-3, momentum=0.9),
    )


def _stem() -> nn.Module:
    # Where ResNet has a pooling, a step of two: the pooling's gradient adds up in no fixed order.
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3, 2, 1, bias=False),
        nn.ReLU(),
    )


class _Mean(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean((2, 3))


class _Recommender(nn.Module):
    def __init__(self, tables: int, rows: int, width: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(rows, width, mode="sum", sparse=True) for _ in range(tables)
        )
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, width), nn.ReLU())
        self.top = nn.Sequential(
            nn.Linear((tables + 1) * width, 1024),
            nn.ReLU(),
            nn.Linear(1024, 512),
            nn.ReLU(),
            nn.Linear(512, 1),
        )

    def forward(self, given: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        numbers, indices = given
        return self.top(
            torch.cat(
                [self.bottom(numbers), *(table(indices[i]) for i, table in enumerate(self.tables))],
                dim=1,
            )
        ).squeeze(1)


def _dlrm(tables: int, rows: int, width: int, batch: int) -> Job:
    stages = nn.ModuleList([_Recommender(tables, rows, width)])

    def make() -> Batch:
        return (torch.randn(batch, 13), torch.randint(rows, (tables, batch, 1))), torch.rand(batch)

    optimizer = torch.optim.SGD(stages.parameters(), lr=0.01)
    return Job(
        stages, make, functional.binary_cross_entropy_with_logits, optimizer, checkpointed=False
    )


# Footprints of 4 to 6 GiB, 3 for DLRM; short ones of 0.3 to 0.6 GiB.
MAKERS: dict[str, tuple[Callable[[], Job], Callable[[], Job]]] = {
    "gpt2": (
        lambda: _transformer(12, 768, 8, 1024, 16384, True),
        lambda: _transformer(2, 256, 16, 256, 8192, True),
    ),
    "bert": (
        lambda: _transformer(12, 768, 16, 512, 16384, False),
        lambda: _transformer(2, 256, 16, 256, 8192, False),
    ),
    "resnet": (lambda: _resnet((3, 4, 6, 3), 48, 224), lambda: _resnet((1, 1, 1, 1), 8, 224)),
    "dlrm": (lambda: _dlrm(26, 400_000, 64, 4096), lambda: _dlrm(4, 250_000, 64, 512)),
}
