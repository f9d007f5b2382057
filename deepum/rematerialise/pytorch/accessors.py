"""Ways to a tensor's memory that do not go through PyTorch's operators: numpy, raw pointers,
storages. A tensor whose memory is asked for that way comes back and stays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

# By name of the method: whether what it gives can change the memory.
_ACCESSORS = {
    "numpy": True,
    "__dlpack__": True,
    "untyped_storage": True,
    "data_ptr": True,
    "tolist": False,
}
# A parameter's address is asked for by many who only compare it.
_HARMLESS_OF_PARAMETERS = {"untyped_storage", "data_ptr"}


class Accessors:
    """While installed, `expose` is told of each tensor whose memory is asked for, with whether it
    may be changed.
    """

    def __init__(self, expose: Callable[[Any, bool, bool], None]) -> None:
        self._expose = expose
        self._before: dict[str, Any] = {}

    def install(self) -> None:
        """From now on."""
        for name, may_change in _ACCESSORS.items():
            self._before[name] = torch.Tensor.__dict__.get(name)
            setattr(torch.Tensor, name, self._wrapped(name, may_change))

    def remove(self) -> None:
        """As it was before."""
        for name, method in self._before.items():
            if method is None:
                delattr(torch.Tensor, name)
            else:
                setattr(torch.Tensor, name, method)
        self._before.clear()

    def _wrapped(self, name: str, may_change: bool) -> Any:
        original = getattr(torch.Tensor, name)
        expose = self._expose
        spares_parameters = name in _HARMLESS_OF_PARAMETERS

        @functools.wraps(original)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
            expose(self, may_change, spares_parameters)
            return original(self, *args, **kwargs)

        return wrapper
