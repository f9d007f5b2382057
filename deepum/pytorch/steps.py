"""Steps of a program's training, seen by its optimizers, or by its backward passes."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

PASSES = 64  # backward passes without an optimizer's step: gradients are added up over fewer
_CREATE_GRAPH = 4  # place of that argument of torch.autograd.grad


def _is_inner(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether what torch.autograd.grad gives goes into a loss, as a gradient penalty does: the
    backward pass is still to come.
    """
    given = args[_CREATE_GRAPH] if len(args) > _CREATE_GRAPH else kwargs.get("create_graph")
    return bool(given)


class Boundaries:
    """`ended` is called at the end of each step: when an optimizer that was the first of a step has
    stepped again. All optimizers of one step, as of two networks, are in it. A program that changes
    its parameters itself is seen by `PASSES` backward passes in a row (torch.autograd.backward, and
    torch.autograd.grad): from then on each ends a step, as long as no optimizer does.
    """

    def __init__(self, ended: Callable[[], None]) -> None:
        self._ended = ended
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()
        self._passes = 0  # since an optimizer stepped
        self._handle: Any = None
        self._originals: dict[str, Any] = {}  # of torch.autograd
        self._own: dict[str, Any] = {}  # in their place

    def install(self) -> None:
        """From now on."""
        self._handle = register_optimizer_step_post_hook(self._stepped)
        self._replace("backward", lambda _args, _kwargs: True)
        self._replace("grad", lambda args, kwargs: not _is_inner(args, kwargs))

    def _replace(
        self, name: str, is_pass: Callable[[tuple[Any, ...], dict[str, Any]], bool]
    ) -> None:
        original = self._originals[name] = getattr(torch.autograd, name)

        @functools.wraps(original)
        def own(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            # Not one within another, of a checkpoint.
            if torch._C._current_graph_task_id() == -1 and is_pass(args, kwargs):
                self._went_back()
            return result

        self._own[name] = own
        setattr(torch.autograd, name, own)

    def remove(self) -> None:
        """Not any more."""
        if self._handle is None:
            return
        self._handle.remove()
        self._handle = None
        for name, own in self._own.items():
            if getattr(torch.autograd, name) is own:
                setattr(torch.autograd, name, self._originals[name])

    def _went_back(self) -> None:
        self._passes += 1
        if self._passes > PASSES and self._handle is not None:
            self._ended()

    def _stepped(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        self._passes = 0
        if not self._seen:
            self._ended()
        elif optimizer in self._seen:
            self._seen.clear()
            self._ended()
        self._seen.add(optimizer)
