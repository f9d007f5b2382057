"""What stands between a program and PyTorch's operators while it is of use what they only read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from deepum.declarations.reads import ReadingOperator, Reads, only_read
from deepum.declarations.shim import Shim
from deepum.pytorch.arguments import are_plain


class Operators(dict[Any, ReadingOperator]):
    """Operator by function, made when it is first asked for."""

    def __missing__(self, function: Any) -> ReadingOperator:
        operator = self[function] = ReadingOperator(function)
        return operator


class DeclaringMode(TorchDispatchMode):
    """Each operator of a thread, and of the backward passes that it begins, declares what it only
    reads while it runs. reads: which memory that is. is_idle: operators pass by. failed: called
    with what went wrong in here, after which it is idle.
    """

    # They pass by: what they are made of is not seen.
    supports_higher_order_operators = True

    def __init__(
        self, shim: Shim, failed: Callable[[Exception], None], reads: Reads = only_read
    ) -> None:
        super().__init__()
        self.is_idle = False
        self._declare = shim.declare
        self._failed = failed
        self._reads = reads
        self._operators = Operators()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # what it takes to skip it loads the compiler, which is not in use

    def __torch_dispatch__(
        self,
        function: Any,
        types: Sequence[Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if self.is_idle or not isinstance(function, torch._ops.OpOverload):
            return function(*args, **kwargs)
        if not are_plain(types):
            return NotImplemented
        try:
            operator = self._operators[function]
            is_whole = operator.is_composite
            ranges = self._reads(operator, args, kwargs) if operator.declares else None
        except Exception as error:
            self.is_idle = True
            self._failed(error)
            return function(*args, **kwargs)
        if is_whole:
            with self:
                return function.decompose(*args, **kwargs)
        if not ranges:
            return function(*args, **kwargs)
        address, count = ranges.buffer_info()
        try:
            self._declare(address, count // 2)
            return function(*args, **kwargs)
        finally:
            self._declare(None, 0)
