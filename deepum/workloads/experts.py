"""A mixture of experts (Switch Transformer, Fedus et al. 2021; two experts a token as Mixtral): a
router in each layer sends tokens to experts, so that the sizes of the experts' batches, and which
experts run at all, differ from step to step.

Nothing computes what the router says where kernels compute nothing, so the numbers of tokens are
drawn here, from a seeded generator: experts' popularity by Dirichlet's distribution, tokens by the
multinomial. The program waits for them, as real ones do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from deepum.workloads.gpt import VOCABULARY
from deepum.workloads.registry import Job
from deepum.workloads.training import Training, adamw

_CHOSEN = 2  # experts a token
_EVENNESS = 2.0  # of Dirichlet's distribution: lower is more uneven


class Experts(nn.Module):
    """In place of an MLP."""

    def __init__(self, width: int, experts: int, generator: Any) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(experts)
        )
        self.generator = generator

    def forward(self, x: Any) -> Any:
        """[batch, sequence, width]."""
        flat = x.reshape(-1, x.shape[-1])
        weights, chosen = functional.softmax(self.router(flat), dim=-1).topk(_CHOSEN, dim=-1)
        order = chosen.flatten().argsort()
        # The program waits for what the router says.
        torch.bincount(chosen.flatten().cpu(), minlength=len(self.experts))
        share = self.generator.dirichlet([_EVENNESS] * len(self.experts))
        counts = self.generator.multinomial(flat.shape[0] * _CHOSEN, share)
        result = torch.zeros_like(flat)
        first = 0
        for expert, count in zip(self.experts, counts.tolist(), strict=True):
            if count == 0:
                continue
            places = order[first : first + count]
            first += count
            tokens = torch.div(places, _CHOSEN, rounding_mode="floor")
            made = expert(flat.index_select(0, tokens)) * weights.flatten().index_select(
                0, places
            ).unsqueeze(1)
            result = result.index_add(0, tokens, made)
        return result.view_as(x)


class Block(nn.Module):
    """Attention and experts."""

    def __init__(self, width: int, heads: int, experts: int, generator: Any) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.combine = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.experts = Experts(width, experts, generator)

    def forward(self, x: Any) -> Any:
        """[batch, sequence, width]."""
        batch, length, width = x.shape
        parts = self.project(self.norm_1(x)).split(width, dim=2)
        query, key, value = (
            part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts
        )
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.combine(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.experts(self.norm_2(x))


class Mixture(nn.Module):
    """Tokens to logits."""

    def __init__(
        self, layers: int, width: int, heads: int, experts: int, positions: int, seed: int
    ) -> None:
        super().__init__()
        generator = np.random.default_rng(seed)
        self.tokens, self.positions = (
            nn.Embedding(VOCABULARY, width),
            nn.Embedding(positions, width),
        )
        self.blocks = nn.ModuleList(Block(width, heads, experts, generator) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Any) -> Any:
        """[batch, sequence] to [batch, sequence, vocabulary]."""
        x = self.tokens(tokens) + self.positions(
            torch.arange(tokens.shape[1], device=tokens.device)
        )
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.tokens.weight)


def mixture(
    device: str, batch: int, seq: int, layers: int, width: int, heads: int, experts: int, seed: int
) -> Job:
    """Trains it."""
    with torch.device(device):
        model = Mixture(layers, width, heads, experts, seq, seed)

    def loss(tokens: Any) -> Any:
        return functional.cross_entropy(model(tokens).view(-1, VOCABULARY), tokens.view(-1))

    return Training(
        loss,
        lambda: (torch.randint(VOCABULARY, (batch, seq), device=device),),
        adamw(model.parameters()),
    )
