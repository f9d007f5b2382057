"""Steps of a program's training, seen by its optimizers, and how long the GPU takes for each."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from deepum.rematerialise.choice import Step


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


class Timer:
    """Measures steps by events, which the program does not wait for. device: the GPU."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._began: Any = None
        self._pending: deque[tuple[Any, Any, Step]] = deque()

    @staticmethod
    def is_captured() -> bool:
        """Whether what is done now becomes a CUDA graph, and an event a part of it."""
        return bool(torch.cuda.is_current_stream_capturing())

    def end(self, step: Step) -> None:
        """A step ends here, and the next begins; its time is known later."""
        ended = torch.cuda.Event(enable_timing=True)
        ended.record(torch.cuda.current_stream(self._device))
        if self._began is not None:
            self._pending.append((self._began, ended, step))
        self._began = ended

    def collect(self) -> None:
        """Times that are known by now."""
        while self._pending and self._pending[0][1].query():
            self._take()

    def wait(self, step: Step) -> None:
        """Until the time of a step, and of those before it, is known."""
        while step.ns is None and self._pending:
            self._pending[0][1].synchronize()
            self._take()

    def _take(self) -> None:
        began, ended, step = self._pending.popleft()
        step.ns = began.elapsed_time(ended) * 1e6
