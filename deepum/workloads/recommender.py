"""DLRM: Naumov et al. 2019, with sparse gradients and SGD as its authors train it. Which rows are
looked up is random.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from deepum.workloads.registry import Job
from deepum.workloads.training import Training, sgd

_NUMBERS = 13


def _mlp(*widths: int) -> list[nn.Module]:
    return [part for a, b in itertools.pairwise(widths) for part in (nn.Linear(a, b), nn.ReLU())]


class DLRM(nn.Module):
    """Numbers and categories to a click's probability, as a logit."""

    def __init__(self, tables: int, rows: int, width: int, sparse: bool) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(rows, width, mode="sum", sparse=sparse) for _ in range(tables)
        )
        self.bottom = nn.Sequential(*_mlp(_NUMBERS, 512, 256, width))
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(*_mlp(width + pairs, 1024, 1024, 512, 256), nn.Linear(256, 1))
        pair = torch.tril_indices(tables + 1, tables + 1, -1)
        self.register_buffer("pairs", pair[0] * (tables + 1) + pair[1])

    def forward(self, numbers: Any, categories: Any) -> Any:
        """[batch, 13], [tables, batch, lookups]."""
        x = self.bottom(numbers)
        vectors = torch.stack(
            [x, *(table(categories[i]) for i, table in enumerate(self.tables))], dim=1
        )
        products = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        return self.top(torch.cat([x, products.index_select(1, self.pairs)], dim=1)).squeeze(1)


def dlrm(
    device: str, batch: int, tables: int, rows: int, width: int, lookups: int, sparse: int
) -> Job:
    """Trains it. `sparse`: 0 for gradients as large as the tables."""
    with torch.device(device):
        model = DLRM(tables, rows, width, bool(sparse))

    def loss(numbers: Any, categories: Any, clicks: Any) -> Any:
        return functional.binary_cross_entropy_with_logits(model(numbers, categories), clicks)

    def data() -> tuple[Any, ...]:
        categories = torch.randint(rows, (tables, batch, lookups), device=device)
        return (
            torch.randn(batch, _NUMBERS, device=device),
            categories,
            torch.rand(batch, device=device),
        )

    return Training(loss, data, sgd(model.parameters(), momentum=0.0))
