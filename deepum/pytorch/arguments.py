"""Arguments of PyTorch's operators, and their memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

_PLAIN = (torch.Tensor, torch.nn.Parameter)
# Without what deepum.rematerialise.pytorch.accessors changes.
storage_of: Callable[[Any], Any] = torch._C.TensorBase.untyped_storage


def tensors_in(value: Any) -> list[Any]:
    """Tensors of an argument or a result, or of several."""
    if isinstance(value, torch.Tensor):
        return [value]
    found: list[Any] = []
    if isinstance(value, (list, tuple)):
        for one in value:
            if isinstance(one, torch.Tensor):
                found.append(one)
            elif isinstance(one, (list, tuple)):
                found += tensors_in(one)
    return found


def storage_or_none(tensor: Any) -> Any:
    """None for tensors that have no storage, such as sparse ones, or several shapes in one."""
    if tensor.is_nested or not torch._C._has_storage(tensor):
        return None
    return storage_of(tensor)


def are_plain(types: Iterable[Any]) -> bool:
    """Whether classes of arguments are PyTorch's own. An operator of others is left to them: those
    that it is made of come to a dispatch mode by themselves.
    """
    return all(one in _PLAIN for one in types)
