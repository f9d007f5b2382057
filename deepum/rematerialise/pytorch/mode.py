"""What stands between a program and PyTorch's operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from deepum.pytorch.arguments import are_plain
from deepum.rematerialise.pytorch.tracker import Tracker


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
        if not are_plain(types):
            return NotImplemented
        if self._tracker.is_composite(function):
            with self:
                return function.decompose(*args, **(kwargs or {}))
        return self._tracker.call(function, tuple(args), dict(kwargs or {}))
