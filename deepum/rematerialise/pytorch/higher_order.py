"""Operators that are given functions (`torch.cond`, `while_loop`, `scan`, flex attention): their
implementations run, and the operators in them are seen one by one, as if the program called them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from deepum.pytorch.arguments import are_plain
from deepum.rematerialise.pytorch.tracker import Tracker

# An implementation that asks for the mode refuses to run in any.
_ASKS_FOR_MODE = "_get_current_dispatch_mode"


def call(
    mode: AbstractContextManager[Any],
    tracker: Tracker,
    operator: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """The result of an operator; `mode` is not on the stack. Nothing is recorded of the operator
    itself: what its implementation makes beside its operators is kept.
    """
    tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
    if not are_plain(type(one) for one in tensors):  # it is traced
        return operator(*args, **kwargs)
    implementation = _implementation(operator, tracker.device)
    if implementation is not None and not _refuses_modes(implementation):
        with mode:
            return implementation(*args, **kwargs)
    with tracker.keeping() as keep:
        keep(tensors)

        def seen(value: Any) -> Any:
            if isinstance(value, (torch.Tensor, torch._ops.OperatorBase)) or not callable(value):
                return value
            return _seen(value, mode, keep)

        result = operator(*tree_map(seen, tuple(args)), **tree_map(seen, dict(kwargs)))
        keep([one for one in tree_leaves(result) if isinstance(one, torch.Tensor)])
    return result


def _implementation(operator: Any, device: torch.device) -> Any:
    """For tensors of the device; None where a mode below is to see it, or none is known."""
    if torch._C._len_torch_dispatch_stack():
        return None
    key = torch._C.DispatchKey.CUDA if device.type == "cuda" else torch._C.DispatchKey.CPU
    try:
        return operator.py_kernels[torch._ops.resolve_key(operator, key)]
    except (KeyError, NotImplementedError):
        return None


def _refuses_modes(implementation: Any) -> bool:
    while isinstance(implementation, functools.partial):
        implementation = implementation.func
    code = getattr(implementation, "__code__", None)
    return code is None or _ASKS_FOR_MODE in code.co_names


def _seen(
    function: Callable[..., Any],
    mode: AbstractContextManager[Any],
    keep: Callable[[list[Any]], None],
) -> Callable[..., Any]:
    """The function, with its operators seen. What it gives is read past the mode, so that it stays
    until the operator is over.
    """

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with mode:
            result = function(*args, **kwargs)
        keep([one for one in tree_leaves(result) if isinstance(one, torch.Tensor)])
        return result

    return wrapper
