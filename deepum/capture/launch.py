"""What an operator does on a GPU: launches, and the memory that each uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from deepum.trace.work import READ, WRITE, Cost


class Pieces(Protocol):
    """Places within a tensor; they may differ from step to step."""

    def at(self, step: int) -> Sequence[tuple[int, int]]:
        """(offset, bytes), from the tensor's first byte on."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory that an operator takes for itself and gives back at its end; bytes. Told apart by
    `name`.
    """

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Use:
    """A launch's use of a tensor (or Scratch): where its elements are (deepum.capture.runs), or
    pieces of that.
    """

    tensor: Any
    flags: int
    pieces: Pieces | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """`sparse`: the shim would know it for a gather or scatter (kernel_hooks/sparse_kernels.cpp).
    `memcpy`: no kernel but the driver's copy, of the first use to the second, or its memset of the
    only one.
    """

    name: str
    uses: Sequence[Use]
    cost: Cost = field(default=Cost())
    sparse: bool = False
    memcpy: bool = False


def read(*tensors: Any) -> list[Use]:
    """Those that are not None, read."""
    return [Use(tensor, READ) for tensor in tensors if tensor is not None]


def write(*tensors: Any) -> list[Use]:
    """Those that are not None, written."""
    return [Use(tensor, WRITE) for tensor in tensors if tensor is not None]


def update(*tensors: Any) -> list[Use]:
    """Those that are not None, read and written."""
    return [Use(tensor, READ | WRITE) for tensor in tensors if tensor is not None]


def span(tensor: Any) -> int:
    """Bytes from the first to the last element."""
    if tensor.numel() == 0:
        return 0
    last = sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return int((last + 1) * tensor.itemsize)
