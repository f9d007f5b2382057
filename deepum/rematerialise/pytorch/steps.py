"""How long the GPU takes for each step of a program's training."""

from __future__ import annotations

from collections import deque
from typing import Any

import torch

from deepum.rematerialise.choice import Step


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
