"""Llama (Touvron et al. 2023; laid out as in transformers): trained in full or by LoRA (Hu et al.
2021), decoding, reading long texts.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from deepum.workloads.registry import Job
from deepum.workloads.training import Training, adamw, building

VOCABULARY = 32000


class RMSNorm(nn.Module):
    """Written out, as transformers does, in FP32."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Any) -> Any:
        """[..., width]."""
        y = x.to(torch.float32)
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * y.to(x.dtype)


class Adapted(nn.Module):
    """A frozen matrix, and beside it one of low rank that is trained; rank 0: the matrix alone,
    trained.
    """

    def __init__(self, inputs: int, outputs: int, rank: int) -> None:
        super().__init__()
        self.whole = nn.Linear(inputs, outputs, bias=False)
        self.rank = rank
        if rank:
            self.whole.weight.requires_grad_(False)
            self.down, self.up = (
                nn.Linear(inputs, rank, bias=False),
                nn.Linear(rank, outputs, bias=False),
            )

    def forward(self, x: Any) -> Any:
        """[..., inputs]."""
        return self.whole(x) + self.up(self.down(x)) * 2.0 if self.rank else self.whole(x)


def rotate(x: Any, cosine: Any, sine: Any) -> Any:
    """Positions by rotation, of halves."""
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat([-second, first], dim=-1) * sine


class Cache:
    """Keys and values of what was read before, in room made beforehand."""

    def __init__(self, batch: int, heads: int, room: int, depth: int, dtype: Any) -> None:
        self.keys, self.values = (
            torch.zeros(batch, heads, room, depth, dtype=dtype) for _ in range(2)
        )

    def extended(self, key: Any, value: Any, at: int) -> tuple[Any, Any]:
        """With these from position `at` on."""
        end = at + key.shape[2]
        self.keys[:, :, at:end].copy_(key)
        self.values[:, :, at:end].copy_(value)
        return self.keys[:, :, :end], self.values[:, :, :end]


class Layer(nn.Module):
    """Attention and gated MLP, normalised before."""

    def __init__(self, width: int, heads: int, hidden: int, rank: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = RMSNorm(width), RMSNorm(width)
        self.query, self.key, self.value, self.combine = (
            Adapted(width, width, rank) for _ in range(4)
        )
        self.gate, self.up, self.down = (
            nn.Linear(width, hidden, False),
            nn.Linear(width, hidden, False),
            nn.Linear(hidden, width, False),
        )
        if rank:
            for part in (self.norm_1, self.norm_2, self.gate, self.up, self.down):
                part.requires_grad_(False)

    def forward(
        self, x: Any, cosine: Any, sine: Any, cache: Cache | None = None, at: int = 0
    ) -> Any:
        """[batch, sequence, width]."""
        batch, length, width = x.shape
        y = self.norm_1(x)
        query, key, value = (
            part(y).view(batch, length, self.heads, -1).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        query, key = rotate(query, cosine, sine), rotate(key, cosine, sine)
        if cache is not None:
            key, value = cache.extended(key, value, at)
        attended = functional.scaled_dot_product_attention(
            query, key, value, is_causal=length > 1 and at == 0
        )
        x = x + self.combine(attended.transpose(1, 2).reshape(batch, length, width))
        y = self.norm_2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """Tokens to logits."""

    def __init__(self, layers: int, width: int, heads: int, hidden: int, rank: int = 0) -> None:
        super().__init__()
        if width % heads or width // heads % 2:
            raise ValueError(f"width {width} divided by {heads} heads is not even")
        self.depth = width // heads
        self.tokens, self.head = (
            nn.Embedding(VOCABULARY, width),
            nn.Linear(width, VOCABULARY, bias=False),
        )
        self.layers = nn.ModuleList(Layer(width, heads, hidden, rank) for _ in range(layers))
        self.norm = RMSNorm(width)
        if rank:
            for part in (self.tokens, self.head, self.norm):
                part.requires_grad_(False)

    def forward(self, tokens: Any, caches: list[Cache] | None = None, at: int = 0) -> Any:
        """[batch, sequence] to [batch, sequence, vocabulary], of the last position alone where
        there are caches.
        """
        x = self.tokens(tokens)
        frequencies = 1.0 / 10000 ** (
            torch.arange(0, self.depth, 2, device=tokens.device) / self.depth
        )
        angles = (
            torch.arange(at, at + tokens.shape[1], device=tokens.device)[:, None]
            * frequencies[None]
        )
        angles = torch.cat([angles, angles], dim=-1)
        cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for number, layer in enumerate(self.layers):
            x = layer(x, cosine, sine, caches[number] if caches else None, at)
        return self.head(self.norm(x if caches is None else x[:, -1:]))


def training(
    device: str, batch: int, seq: int, layers: int, width: int, heads: int, hidden: int, rank: int
) -> Job:
    """Trains it in bfloat16, states of AdamW too. `rank`: of LoRA's matrices; 0: all of it."""
    with building(device, torch.bfloat16):
        model = Llama(layers, width, heads, hidden, rank)

    def loss(tokens: Any) -> Any:
        shifted = functional.pad(tokens, (0, 1), value=-100)[..., 1:].contiguous()
        return functional.cross_entropy(
            model(tokens).float().view(-1, VOCABULARY), shifted.view(-1)
        )

    return Training(
        loss,
        lambda: (torch.randint(VOCABULARY, (batch, seq), device=device),),
        adamw(model.parameters()),
    )


class Decoding:
    """A token for each sequence at a time; `tokens` of them a step. Weights are read over and over,
    caches grow.
    """

    def __init__(
        self, device: str, model: Any, heads: int, batch: int, prompt: int, tokens: int, room: int
    ) -> None:
        self._device, self._model, self._batch, self._tokens, self._room = (
            device,
            model,
            batch,
            tokens,
            room,
        )
        with torch.device(device):
            self._caches = [
                Cache(batch, heads, room, model.depth, torch.bfloat16) for _ in model.layers
            ]
        self._prompt = self._at = prompt

    @torch.no_grad()
    def step(self) -> None:
        """So many tokens."""
        token = torch.randint(VOCABULARY, (self._batch, 1), device=self._device)
        for _ in range(self._tokens):
            if self._at == self._room:
                self._at = self._prompt
            token = self._model(token, self._caches, self._at)[:, -1].argmax(-1, keepdim=True)
            self._at += 1


def decoding(
    device: str,
    batch: int,
    prompt: int,
    tokens: int,
    room: int,
    layers: int,
    width: int,
    heads: int,
    hidden: int,
) -> Job:
    """Decodes in bfloat16 behind a prompt; when the cache is full, behind another."""
    if not prompt < room:
        raise ValueError(f"a cache of {room} has no room behind a prompt of {prompt}")
    with building(device, torch.bfloat16):
        model = Llama(layers, width, heads, hidden)
    return Decoding(device, model.requires_grad_(False), heads, batch, prompt, tokens, room)


class Reading:
    """Texts are read a piece at a time, each piece attending to all before: caches grow with each
    step, and begin anew with each text.
    """

    def __init__(
        self, device: str, model: Any, heads: int, batch: int, piece: int, room: int
    ) -> None:
        self._device, self._model, self._heads, self._batch, self._piece, self._room = (
            device,
            model,
            heads,
            batch,
            piece,
            room,
        )
        self._at = room
        self._keys: list[Any] = []

    @torch.no_grad()
    def step(self) -> None:
        """A piece."""
        if self._at + self._piece > self._room:
            self._at = 0
            self._keys = [_Growing() for _ in self._model.layers]
        self._model(
            torch.randint(VOCABULARY, (self._batch, self._piece), device=self._device),
            self._keys,
            self._at,
        )
        self._at += self._piece


class _Growing:
    """Keys and values that grow by concatenation, as transformers' DynamicCache."""

    def __init__(self) -> None:
        self._parts: tuple[Any, Any] | None = None

    def extended(self, key: Any, value: Any, at: int) -> tuple[Any, Any]:
        """With these at their end."""
        if self._parts is not None:
            key, value = (
                torch.cat([old, new], dim=2)
                for old, new in zip(self._parts, (key, value), strict=True)
            )
        self._parts = key, value
        return key, value


def reading(
    device: str, batch: int, piece: int, room: int, layers: int, width: int, heads: int, hidden: int
) -> Job:
    """Reads texts of `room` tokens in bfloat16, `piece` of them a step."""
    if not 0 < piece <= room:
        raise ValueError(f"pieces of {piece} do not fit texts of {room}")
    with building(device, torch.bfloat16):
        model = Llama(layers, width, heads, hidden)
    return Reading(device, model.requires_grad_(False), heads, batch, piece, room)
