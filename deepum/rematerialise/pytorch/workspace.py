"""Memory that an operator takes while it runs, beside its results: copies in the layout of a
library, buffers of its own. No shape function tells of it, so that it is measured.
"""

from __future__ import annotations

from typing import Any

import torch


class CpuWorkspace:
    """Measured by the memory events of PyTorch's profiler, unless the program uses that itself."""

    def __init__(self) -> None:
        own: Any = torch._C._autograd
        self._enabled: Any = getattr(own, "_profiler_enabled", None)
        self._enable: Any = getattr(own, "_enable_profiler_legacy", None)
        self._disable: Any = getattr(own, "_disable_profiler_legacy", None)
        self._settings: Any = None
        if self._enabled and self._enable and self._disable:
            self._settings = torch.autograd.ProfilerConfig(
                torch.autograd.ProfilerState.CPU,
                False,  # shapes
                True,  # memory
                False,
                False,
                False,
                torch._C._profiler._ExperimentalConfig(),
            )

    def allocated(self) -> int | None:
        """Bytes that the device's allocator has handed out; None: it does not tell."""
        return None

    def begin(self) -> bool:
        """Right before the operator; whether it can be measured."""
        if self._settings is None or self._enabled():
            return False
        self._enable(self._settings)
        return True

    def end(self) -> int:
        """Right behind it: bytes beyond what it left."""
        now = most = 0
        for thread in self._disable():
            for event in thread:
                if event.kind() == "memory_alloc":
                    now += event.cpu_memory_usage()
                    most = max(most, now)
        return most - max(now, 0)


class GpuWorkspace:
    """Measured by the peak of PyTorch's caching allocator, where an operator raises it."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._before = 0
        self._peak = 0

    def allocated(self) -> int | None:
        """Bytes that the device's allocator has handed out: whole blocks, of which it leaves up to
        a MiB unused, and what libraries took.
        """
        return self._read()[0]

    def begin(self) -> bool:
        """Right before the operator; whether it can be measured."""
        self._before, self._peak = self._read()
        return True

    def end(self) -> int:
        """Right behind it: bytes beyond what it left, as far as they were more than ever before."""
        now, peak = self._read()
        return peak - max(now, self._before) if peak > self._peak else 0

    def _read(self) -> tuple[int, int]:
        every = torch.cuda.memory_stats_as_nested_dict(self._device)["allocated_bytes"]["all"]
        return int(every["current"]), int(every["peak"])


def workspace_of(device: torch.device) -> CpuWorkspace | GpuWorkspace:
    """The one of a device."""
    return CpuWorkspace() if device.type == "cpu" else GpuWorkspace(device)
