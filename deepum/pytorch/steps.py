"""Steps of a program's training, seen by its optimizers."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook


class Boundaries:
    """`ended` is called at the end of each step: when an optimizer that was the first of a step has
    stepped again. All optimizers of one step, as of two networks, are in it.
    """

    def __init__(self, ended: Callable[[], None]) -> None:
        self._ended = ended
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()
        self._handle: Any = None

    def install(self) -> None:
        """From now on."""
        self._handle = register_optimizer_step_post_hook(self._stepped)

    def remove(self) -> None:
        """Not any more."""
        if self._handle is not None:
            self._handle.remove()

    def _stepped(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if not self._seen:
            self._ended()
        elif optimizer in self._seen:
            self._seen.clear()
            self._ended()
        self._seen.add(optimizer)
