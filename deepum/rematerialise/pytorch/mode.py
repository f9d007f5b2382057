"""What stands between a program and PyTorch's operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from deepum.rematerialise.pytorch.tracker import Tracker

_PLAIN = (torch.Tensor, torch.nn.Parameter)


class Mode(TorchDispatchMode):
    """Hands the operators of one thread to a tracker."""

    def __init__(self, tracker: Tracker) -> None:
        super().__init__()
        self._tracker = tracker

    def __torch_dispatch__(
        self,
        function: Any,
        types: Sequence[Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if self._tracker.is_idle:
            return function(*args, **(kwargs or {}))
        for one in types:
            if one not in _PLAIN:
                return NotImplemented  # the operators that the subclass is made of come here again
        if self._tracker.is_composite(function):
            with self:
                return function.decompose(*args, **(kwargs or {}))
        return self._tracker.call(function, tuple(args), dict(kwargs or {}))
