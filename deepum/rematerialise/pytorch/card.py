"""What a program can know of the card under it when its memory is unified memory."""

from __future__ import annotations

import os
from typing import Any

import torch

from deepum import shim
from deepum.errors import UsageError
from deepum.sizes import parse_size

_COPIED = 32 << 20  # bytes of one copy
_COPIES = 3


def check_unified(device: torch.device) -> None:
    """Raises UsageError where nothing moves what is beyond the device's memory."""
    if device.type != "cuda":
        cause = f"is for a GPU, and the device is '{device}'"
    elif shim.is_disabled():
        cause = "is for unified memory, and DEEPUM_DISABLE is set"
    elif not shim.is_loaded():
        cause = "is for programs under `deepum run`"
    else:
        return
    raise UsageError(f"deepum.remat: budget 'auto': {cause}; give a size, such as '8GiB'")


def memory_bytes(device: torch.device) -> int:
    """What managed memory may take of the card at most; a little less, if others take some."""
    total = int(torch.cuda.get_device_properties(device).total_memory)
    given = os.environ.get("DEEPUM_GPU_MEMORY")
    if given:  # one for each GPU, and the last for all further ones
        sizes = [parse_size(part) for part in given.split(",")]
        total = min(total, sizes[min(device.index or 0, len(sizes) - 1)])
    return total


def link_ns(device: torch.device) -> float:
    """Nanoseconds of a byte on the link to the device: of a pinned copy, the best of a few."""
    with torch.cuda.device(device):
        there = torch.zeros(_COPIED, dtype=torch.uint8, device=device)
        here = torch.zeros(_COPIED, dtype=torch.uint8, pin_memory=True)
        times = []
        for _ in range(_COPIES):
            began, ended = _event(), _event()
            began.record()
            there.copy_(here, non_blocking=True)
            ended.record()
            ended.synchronize()
            times.append(began.elapsed_time(ended) * 1e6)
    return float(min(times) / _COPIED)


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)
