"""BERT: Devlin et al. 2018, trained on its masked tokens; laid out as in transformers'
modeling_bert.py, with fused attention.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from deepum.workloads.registry import Job
from deepum.workloads.training import Training, adamw

VOCABULARY = 30522
_DROPOUT = 0.1


class Layer(nn.Module):
    """Attention and MLP, normalised behind."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.combine = (nn.Linear(width, width) for _ in range(4))
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = nn.Dropout(_DROPOUT)

    def forward(self, x: Any) -> Any:
        """[batch, sequence, width]."""
        batch, length, width = x.shape
        query, key, value = (
            part(x).view(batch, length, self.heads, -1).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        attended = functional.scaled_dot_product_attention(
            query, key, value, dropout_p=_DROPOUT if self.training else 0.0
        )
        attended = attended.transpose(1, 2).reshape(batch, length, width)
        x = self.norm_1(self.dropout(self.combine(attended)) + x)
        return self.norm_2(self.dropout(self.narrow(functional.gelu(self.widen(x)))) + x)


class Bert(nn.Module):
    """Tokens to logits."""

    def __init__(self, layers: int, width: int, heads: int, positions: int) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is no multiple of {heads} heads")
        self.tokens, self.positions, self.types = (
            nn.Embedding(VOCABULARY, width),
            nn.Embedding(positions, width),
            nn.Embedding(2, width),
        )
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(_DROPOUT)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.transform, self.transform_norm = nn.Linear(width, width), nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(VOCABULARY))

    def forward(self, tokens: Any) -> Any:
        """[batch, sequence] to [batch, sequence, vocabulary]."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.types(torch.zeros_like(tokens)) + self.positions(positions)
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = layer(x)
        x = self.transform_norm(functional.gelu(self.transform(x)))
        return functional.linear(x, self.tokens.weight, self.bias)


def bert(device: str, batch: int, seq: int, layers: int, width: int, heads: int) -> Job:
    """Trains it to fill in tokens."""
    with torch.device(device):
        model = Bert(layers, width, heads, max(seq, 512))

    def loss(tokens: Any) -> Any:
        return functional.cross_entropy(model(tokens).view(-1, VOCABULARY), tokens.view(-1))

    return Training(
        loss,
        lambda: (torch.randint(VOCABULARY, (batch, seq), device=device),),
        adamw(model.parameters()),
    )
