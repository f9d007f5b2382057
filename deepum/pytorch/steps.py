"""Steps of a program's training, seen by its optimizers, or by its backward passes."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

PASSES = 64  # of backward without an optimizer's step: gradients are added up over fewer


class Boundaries:
    """`ended` is called at the end of each step: when an optimizer that was the first of a step has
    stepped again. All optimizers of one step, as of two networks, are in it. A program that changes
    its parameters itself is seen by `PASSES` calls of backward in a row: from then on each ends a
    step, as long as no optimizer does.
    """

    def __init__(self, ended: Callable[[], None]) -> None:
        self._ended = ended
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()
        self._passes = 0  # since an optimizer stepped
        self._handle: Any = None
        self._own: Any = None  # in the place of torch.autograd.backward
        self._original: Any = None

    def install(self) -> None:
        """From now on."""
        self._handle = register_optimizer_step_post_hook(self._stepped)
        original = self._original = torch.autograd.backward

        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if torch._C._current_graph_task_id() == -1:  # not one within another, of a checkpoint
                self._went_back()
            return result

        torch.autograd.backward = self._own = backward

    def remove(self) -> None:
        """Not any more."""
        if self._handle is None:
            return
        self._handle.remove()
        self._handle = None
        if torch.autograd.backward is self._own:
            torch.autograd.backward = self._original

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
