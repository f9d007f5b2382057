"""GPT-2: Radford et al. 2019, laid out as in transformers' modeling_gpt2.py (fused projection, GELU
by its tanh formula, tied head).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from deepum.workloads.registry import Job
from deepum.workloads.training import Training, adamw

VOCABULARY = 50257
_DROPOUT = 0.1


def gelu_tanh(x: Any) -> Any:
    """Written out as models of that time have it: each operation keeps what its gradient needs."""
    return (
        0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))
    )


class Affine(nn.Module):
    """x W + b with W stored as inputs x outputs, which GPT-2's authors call a 1D convolution."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x: Any) -> Any:
        """Any leading dimensions."""
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(*x.shape[:-1], -1)


class Block(nn.Module):
    """Attention and MLP, normalised before."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.combine = Affine(width, 3 * width), Affine(width, width)
        self.widen, self.narrow = Affine(width, 4 * width), Affine(4 * width, width)

    def forward(self, x: Any) -> Any:
        """[batch, sequence, width]."""
        batch, length, width = x.shape
        parts = self.project(self.norm_1(x)).split(width, dim=2)
        query, key, value = (
            part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts
        )
        dropout = _DROPOUT if self.training else 0.0
        attended = functional.scaled_dot_product_attention(
            query, key, value, dropout_p=dropout, is_causal=True
        )
        attended = attended.transpose(1, 2).reshape(batch, length, width)
        x = functional.dropout(self.combine(attended), _DROPOUT, self.training) + x
        return x + functional.dropout(
            self.narrow(gelu_tanh(self.widen(self.norm_2(x)))), _DROPOUT, self.training
        )


class GPT2(nn.Module):
    """Tokens to logits."""

    def __init__(self, layers: int, width: int, heads: int, positions: int) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is no multiple of {heads} heads")
        self.tokens, self.positions = (
            nn.Embedding(VOCABULARY, width),
            nn.Embedding(positions, width),
        )
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Any) -> Any:
        """[batch, sequence] to [batch, sequence, vocabulary]."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = functional.dropout(
            self.tokens(tokens) + self.positions(positions), _DROPOUT, self.training
        )
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.tokens.weight)


def gpt2(device: str, batch: int, seq: int, layers: int, width: int, heads: int) -> Job:
    """Trains it to foretell the next token."""
    with torch.device(device):
        model = GPT2(layers, width, heads, seq)

    def loss(tokens: Any) -> Any:
        shifted = functional.pad(tokens, (0, 1), value=-100)[..., 1:].contiguous()
        return functional.cross_entropy(model(tokens).view(-1, VOCABULARY), shifted.view(-1))

    return Training(
        loss,
        lambda: (torch.randint(VOCABULARY, (batch, seq), device=device),),
        adamw(model.parameters()),
    )
