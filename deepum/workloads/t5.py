"""T5: Raffel et al. 2019, trained; version 1.1's gated MLP, laid out as in transformers'
modeling_t5.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from deepum.workloads.gpt import gelu_tanh
from deepum.workloads.llama import RMSNorm
from deepum.workloads.registry import Job
from deepum.workloads.training import Training, adamw

VOCABULARY = 32128
_BUCKETS = 32
_DROPOUT = 0.1


class Attention(nn.Module):
    """With weights computed one by one: T5 adds a bias by distance."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (
            nn.Linear(width, heads * 64, bias=False) for _ in range(3)
        )
        self.combine = nn.Linear(heads * 64, width, bias=False)

    def forward(self, x: Any, source: Any, bias: Any) -> Any:
        """[batch, length, width], [batch, source length, width], [1, heads, length, source length]
        or None.
        """
        batch, length, _ = x.shape
        query, key, value = (
            part(y).view(batch, y.shape[1], self.heads, 64).transpose(1, 2)
            for part, y in ((self.query, x), (self.key, source), (self.value, source))
        )
        scores = torch.matmul(query, key.transpose(3, 2))
        if bias is not None:
            scores += bias
        weights = functional.dropout(
            functional.softmax(scores.float(), dim=-1).type_as(scores), _DROPOUT, self.training
        )
        return self.combine(torch.matmul(weights, value).transpose(1, 2).reshape(batch, length, -1))


class Layer(nn.Module):
    """Attention, attention to the encoder's result in a decoder, and MLP."""

    def __init__(self, width: int, heads: int, hidden: int, decoder: bool) -> None:
        super().__init__()
        self.attentions = nn.ModuleList(Attention(width, heads) for _ in range(1 + decoder))
        self.norms = nn.ModuleList(RMSNorm(width) for _ in range(2 + decoder))
        self.gate, self.widen = (
            nn.Linear(width, hidden, bias=False),
            nn.Linear(width, hidden, bias=False),
        )
        self.narrow = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Any, bias: Any, encoded: Any) -> Any:
        """[batch, length, width]."""
        for number, attention in enumerate(self.attentions):
            y = self.norms[number](x)
            x = x + functional.dropout(
                attention(y, encoded if number else y, None if number else bias),
                _DROPOUT,
                self.training,
            )
        y = self.norms[-1](x)
        y = functional.dropout(gelu_tanh(self.gate(y)) * self.widen(y), _DROPOUT, self.training)
        return x + functional.dropout(self.narrow(y), _DROPOUT, self.training)


class Stack(nn.Module):
    """Encoder or decoder. Biases by distance are looked up once."""

    def __init__(self, layers: int, width: int, heads: int, hidden: int, decoder: bool) -> None:
        super().__init__()
        self.distances = nn.Embedding(_BUCKETS, heads)
        self.layers = nn.ModuleList(Layer(width, heads, hidden, decoder) for _ in range(layers))
        self.norm = RMSNorm(width)

    def forward(self, x: Any, encoded: Any = None) -> Any:
        """[batch, length, width]."""
        places = torch.arange(x.shape[1], device=x.device)
        bias = (
            self.distances((places[None] - places[:, None]).clamp(0, _BUCKETS - 1))
            .permute(2, 0, 1)
            .unsqueeze(0)
        )
        x = functional.dropout(x, _DROPOUT, self.training)
        for layer in self.layers:
            x = layer(x, bias, encoded)
        return functional.dropout(self.norm(x), _DROPOUT, self.training)


class T5(nn.Module):
    """Tokens and the answer so far to logits."""

    def __init__(self, layers: int, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.tokens, self.head = (
            nn.Embedding(VOCABULARY, width),
            nn.Linear(width, VOCABULARY, bias=False),
        )
        self.encoder, self.decoder = (
            Stack(layers, width, heads, hidden, decoder) for decoder in (False, True)
        )

    def forward(self, tokens: Any, answer: Any) -> Any:
        """[batch, length], [batch, answer's length]."""
        return self.head(self.decoder(self.tokens(answer), self.encoder(self.tokens(tokens))))


def t5(
    device: str, batch: int, seq: int, answer: int, layers: int, width: int, heads: int, hidden: int
) -> Job:
    """Trains it in FP32."""
    return training(device, lambda: batch, seq, answer, layers, width, heads, hidden)


def training(
    device: str,
    batch: Callable[[], int],
    seq: int,
    answer: int,
    layers: int,
    width: int,
    heads: int,
    hidden: int,
) -> Training:
    """The same with batches of a size that may change."""
    with torch.device(device):
        model = T5(layers, width, heads, hidden)

    def loss(tokens: Any, wanted: Any) -> Any:
        before = functional.pad(wanted, (1, 0))[:, :-1].contiguous()
        return functional.cross_entropy(model(tokens, before).view(-1, VOCABULARY), wanted.view(-1))

    def data() -> tuple[Any, ...]:
        return tuple(
            torch.randint(VOCABULARY, (batch(), length), device=device) for length in (seq, answer)
        )

    return Training(loss, data, adamw(model.parameters()))
