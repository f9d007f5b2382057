"""Captures a named workload as a trace."""

from __future__ import annotations

import gc
from dataclasses import dataclass

from deepum.capture.device import Device, Step
from deepum.trace import Trace
from deepum.workloads import Request

MULTIPROCESSORS = 80  # of a V100: what the stand-in for cuBLAS cuts products for


@dataclass(frozen=True)
class Captured:
    """`launches`, `flops`: of the last step. `peak_bytes`: most that was allocated at once, as PyTorch counts it."""

    trace: Trace
    launches: int
    flops: float
    peak_bytes: int
    reserved_bytes: int


def capture(request: Request, steps: int, synchronise: bool = False, multiprocessors: int = MULTIPROCESSORS, seed: int = 0) -> Captured:
    """`steps` steps of it. `synchronise`: the program waits for the GPU after each. Raises DeepumError and UsageError."""
    try:
        from deepum.capture.mode import DEVICE, Capture, Choices
    except ImportError:
        request.build("cpu")  # says what is missing
        raise
    device = Device(seed)
    collects = gc.isenabled()
    gc.disable()  # tensors die when Python lets go of them, not when a collection happens to come
    try:
        with Choices(), Capture(device, multiprocessors):
            job = request.build(DEVICE)
            last: Step | None = None
            for number in range(steps):
                job.step()
                before, last = last, device.end_step(synchronise)
                if before is not None and last.like(before) and not request.named.differs:
                    for _ in range(number + 1, steps):
                        device.repeat(last)
                    break
        device.forget()
    finally:
        if collects:
            gc.enable()
    assert last is not None
    reserved = device.program.allocator.reserved_bytes
    return Captured(device.program.trace(str(request)), last.launches, last.flops, device.peak_bytes, reserved)
