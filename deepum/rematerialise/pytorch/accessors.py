"""Ways to a tensor's memory that do not go through PyTorch's operators: numpy, raw pointers,
storages, DLPack. A tensor whose memory is asked for that way comes back and stays.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

# By name of the method: whether what it gives can change the memory.
_METHODS = {
    "numpy": True,
    "__dlpack__": True,
    "untyped_storage": True,
    "data_ptr": True,
    "tolist": False,
}
_FUNCTIONS = ((torch, "to_dlpack"), (torch.utils.dlpack, "to_dlpack"))
# Gives memory to C code past all of the above; without it such code asks __dlpack__.
_C_INTERFACE = "__dlpack_c_exchange_api__"
# A parameter's address is asked for by many who only compare it.
_HARMLESS_OF_PARAMETERS = {"untyped_storage", "data_ptr"}
# PyTorch's own, which makes tensors without memory from others: of storages it asks sizes.
_ASKS_SIZES = "torch._subclasses.meta_utils"


class Accessors:
    """While installed, `expose` is told of each tensor whose memory is asked for: whether it may be
    changed, and whether that is not meant of parameters.
    """

    def __init__(self, expose: Callable[[Any, bool, bool], None]) -> None:
        self._expose = expose
        self._before: list[tuple[Any, str, Any]] = []

    def install(self) -> None:
        """From now on."""
        for name, may_change in _METHODS.items():
            self._wrap(torch.Tensor, name, may_change)
        for module, name in _FUNCTIONS:
            self._wrap(module, name, True)
        interface = torch.Tensor.__dict__.get(_C_INTERFACE)
        if interface is not None:
            self._before.append((torch.Tensor, _C_INTERFACE, interface))
            delattr(torch.Tensor, _C_INTERFACE)

    def remove(self) -> None:
        """As it was before."""
        while self._before:
            owner, name, original = self._before.pop()
            if original is None:
                delattr(owner, name)
            else:
                setattr(owner, name, original)

    def _wrap(self, owner: Any, name: str, may_change: bool) -> None:
        self._before.append((owner, name, owner.__dict__.get(name)))
        original = getattr(owner, name)
        expose = self._expose
        spares_parameters = name in _HARMLESS_OF_PARAMETERS

        @functools.wraps(original)
        def wrapper(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if sys._getframe(1).f_globals.get("__name__") != _ASKS_SIZES:
                expose(tensor, may_change, spares_parameters)
            return original(tensor, *args, **kwargs)

        setattr(owner, name, wrapper)
