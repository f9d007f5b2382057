"""A language model of LSTM layers (as PyTorch's word_language_model), on sentences of varying
lengths: cells run one by one, so that steps differ in how many launches they have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from deepum.workloads.registry import Job
from deepum.workloads.training import Training, adamw

VOCABULARY = 33278  # of WikiText-2


class LSTM(nn.Module):
    """Tokens to logits."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.tokens, self.head = nn.Embedding(VOCABULARY, width), nn.Linear(width, VOCABULARY)
        self.cells = nn.ModuleList(nn.LSTMCell(width, width) for _ in range(layers))
        self.width = width

    def forward(self, tokens: Any) -> Any:
        """[sequence, batch] to [sequence, batch, vocabulary]."""
        rows = self.tokens(tokens).unbind(0)
        for cell in self.cells:
            hidden = torch.zeros(tokens.shape[1], self.width, device=tokens.device)
            state, made = (hidden, torch.zeros_like(hidden)), []
            for row in rows:
                state = cell(row, state)
                made.append(state[0])
            rows = tuple(made)
        return self.head(torch.stack(rows))


def lstm(device: str, batch: int, least: int, most: int, layers: int, width: int, seed: int) -> Job:
    """Trains it on `least` to `most` tokens, drawn by a seeded generator."""
    if not 0 < least <= most:
        raise ValueError(f"there are no lengths from {least} to {most}")
    generator = np.random.default_rng(seed)
    with torch.device(device):
        model = LSTM(layers, width)

    def loss(tokens: Any) -> Any:
        return functional.cross_entropy(model(tokens).view(-1, VOCABULARY), tokens.view(-1))

    def data() -> tuple[Any, ...]:
        return (
            torch.randint(
                VOCABULARY, (int(generator.integers(least, most + 1)), batch), device=device
            ),
        )

    return Training(loss, data, adamw(model.parameters()))
