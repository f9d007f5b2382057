"""What the programs of this folder have in common: steps that are timed as GPU programs
time them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch


def repeat(step: Callable[[], object], steps: int) -> None:
    """Each step with its time on the GPU; then the peak of memory."""
    for number in range(1, steps + 1):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        step()
        end.record()
        end.synchronize()
        print(f"step {number}: {begin.elapsed_time(end):.2f} ms", flush=True)
    finish()


def finish() -> None:
    """The peak of memory; autograd's threads have ended (docs/simulated-gpu.md, The runtime
    library).
    """
    torch.cuda.synchronize()
    print(f"peak memory: {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB allocated", flush=True)
    time.sleep(0.3)
