"""What stands between a program and PyTorch's operators."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from deepum.pytorch.arguments import are_plain
from deepum.rematerialise.pytorch import higher_order
from deepum.rematerialise.pytorch.tracker import Tracker

_HIGHER_ORDER = torch._ops.HigherOrderOperator
_COMPILER = torch._C._dynamo.eval_frame
# No public interface: a PyTorch without it keeps its compiler out by its own, slower means.
_CAN_SKIP_FRAMES = all(
    hasattr(_COMPILER, name)
    for name in ("set_code_exec_strategy", "_FrameAction", "_FrameExecStrategy")
)


@functools.cache
def _keep_compiler_out() -> None:
    """It takes frames of Python one by one: neither those of a mode nor what they call."""
    skip = _COMPILER._FrameAction.SKIP
    _COMPILER.set_code_exec_strategy(
        Mode.__torch_dispatch__.__code__, _COMPILER._FrameExecStrategy(skip, skip)
    )


class Mode(TorchDispatchMode):
    """Hands the operators of one thread to a tracker."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # What it does instead of `_keep_compiler_out` imports the compiler, which takes seconds.
        return not _CAN_SKIP_FRAMES

    def __init__(self, tracker: Tracker) -> None:
        super().__init__()
        if _CAN_SKIP_FRAMES:
            _keep_compiler_out()
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
        if isinstance(function, _HIGHER_ORDER):
            return higher_order.call(self, self._tracker, function, args, kwargs or {})
        if not are_plain(types):
            if any(issubclass(one, FakeTensor) for one in types):  # it is traced
                return function(*args, **(kwargs or {}))
            return NotImplemented
        if self._tracker.is_composite(function):
            with self:
                return function.decompose(*args, **(kwargs or {}))
        return self._tracker.call(function, tuple(args), dict(kwargs or {}))
