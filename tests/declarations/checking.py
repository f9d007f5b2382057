"""Programs of PyTorch on the CPU, each of whose operators is watched: what it is said to only read,
and whether that has the same bytes afterwards.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from deepum.declarations.reads import ReadingOperator, only_read

torch: Any = pytest.importorskip("torch")
dispatch: Any = pytest.importorskip("torch.utils._python_dispatch")


def read_by(function: Any, *args: Any, **kwargs: Any) -> list[tuple[int, int]]:
    """What a call of an operator is said to only read: (begin, end)."""
    flat = only_read(ReadingOperator(function), args, kwargs, "cpu", 1)
    return list(zip(flat[::2], flat[1::2], strict=True))


def memory(*tensors: Any) -> list[tuple[int, int]]:
    """Of storages, in order."""
    storages = [tensor.untyped_storage() for tensor in tensors]
    return sorted({(one.data_ptr(), one.data_ptr() + one.nbytes()) for one in storages})


class Watch(dispatch.TorchDispatchMode):  # type: ignore[misc]
    """changed: operators that changed what they only read, by name. declared: what each was said to
    only read, in order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.changed: list[str] = []
        self.declared: list[tuple[str, list[tuple[int, int]]]] = []

    def __torch_dispatch__(
        self,
        function: Any,
        types: Sequence[Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        operator = ReadingOperator(function)
        ranges = read_by(function, *args, **kwargs) if operator.declares else []
        before = [ctypes.string_at(begin, end - begin) for begin, end in ranges]
        result = function(*args, **kwargs)
        after = [ctypes.string_at(begin, end - begin) for begin, end in ranges]
        self.declared.append((operator.name, ranges))
        if before != after:
            self.changed.append(operator.name)
        return result


def watched(program: Callable[[], Any]) -> Watch:
    torch.manual_seed(0)
    watch = Watch()
    with watch:
        program()
    return watch
