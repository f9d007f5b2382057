"""Training steps as scripts make them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


def adamw(parameters: Iterable[Any]) -> Any:
    """AdamW by foreach kernels, PyTorch's default on CUDA."""
    return torch.optim.AdamW(
        [one for one in parameters if one.requires_grad], lr=1e-4, foreach=True
    )


def adam(parameters: Iterable[Any]) -> Any:
    """The same of Adam."""
    return torch.optim.Adam([one for one in parameters if one.requires_grad], lr=1e-4, foreach=True)


def sgd(parameters: Iterable[Any], momentum: float = 0.9) -> Any:
    """SGD by foreach kernels; where a gradient is sparse, PyTorch takes them one by one."""
    return torch.optim.SGD(list(parameters), lr=0.01, momentum=momentum, foreach=True)


@contextmanager
def building(device: str, dtype: Any = torch.float32) -> Iterator[None]:
    """What is made inside is on that device and, where nothing else is said, of that type."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            yield
    finally:
        torch.set_default_dtype(before)


class Training:
    """Batch, loss, gradients, update."""

    def __init__(
        self, loss: Callable[..., Any], batch: Callable[[], tuple[Any, ...]], optimizer: Any
    ) -> None:
        self._loss = loss
        self._batch = batch
        self._optimizer = optimizer

    def evaluate(self) -> None:
        """A batch, without gradients."""
        with torch.no_grad():
            self._loss(*self._batch())

    def step(self) -> None:
        """Once."""
        loss = self._loss(*self._batch())
        loss.backward()
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
