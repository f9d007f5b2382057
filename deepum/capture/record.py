"""Captures a named workload as a trace."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass

from deepum.capture.device import Device, Step
from deepum.errors import DeepumError
from deepum.trace import Trace
from deepum.workloads import Job, Request

MULTIPROCESSORS = 80  # of a V100: what the stand-in for cuBLAS cuts products for


@dataclass(frozen=True)
class Captured:
    """`launches`, `flops`: of the last step. `peak_bytes`: most that was allocated at once, as
    PyTorch counts it.
    """

    trace: Trace
    launches: int
    flops: float
    peak_bytes: int
    reserved_bytes: int


def capture(
    request: Request,
    steps: int,
    synchronise: bool = False,
    multiprocessors: int = MULTIPROCESSORS,
    seed: int = 0,
) -> Captured:
    """`steps` steps of a named workload. `synchronise`: the program waits for the GPU after each.
    Raises DeepumError and UsageError.
    """
    return capture_job(
        str(request),
        request.build,
        steps,
        synchronise,
        request.named.differs,
        multiprocessors,
        seed,
    )


def capture_job(
    name: str,
    build: Callable[[str], Job],
    steps: int,
    synchronise: bool = False,
    differs: bool = False,
    multiprocessors: int = MULTIPROCESSORS,
    seed: int = 0,
) -> Captured:
    """The same of any job; `build` makes it on a device. `differs`: a step may differ from the one
    before even if that was like its own predecessor; else the first that is like it is repeated.
    """
    try:
        from deepum.capture.mode import DEVICE, Capture, Choices
    except ImportError:
        raise DeepumError(f"workload {name}: needs PyTorch; pip install 'deepum[torch]'") from None
    device = Device(seed)
    collects = gc.isenabled()
    gc.disable()  # tensors die when Python lets go of them, not when a collection happens to come
    try:
        with Choices(), Capture(device, multiprocessors):
            job = build(DEVICE)
            last: Step | None = None
            for number in range(steps):
                job.step()
                before, last = last, device.end_step(synchronise)
                if before is not None and last.like(before) and not differs:
                    for _ in range(number + 1, steps):
                        device.repeat(last)
                    break
        device.forget()
    finally:
        if collects:
            gc.enable()
    if last is None:
        raise ValueError("no steps")
    reserved = device.program.allocator.reserved_bytes
    return Captured(
        device.program.trace(name), last.launches, last.flops, device.peak_bytes, reserved
    )
