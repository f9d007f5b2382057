"""A planned arena as PyTorch's allocator (native/arena_allocator; docs/arena.md, At run time).

import deepum.arena.pytorch
deepum.arena.pytorch.install()          # before PyTorch allocates on the GPU

python -m deepum.arena.pytorch train.py ARGUMENT...     # a script as it is
"""

from __future__ import annotations

import ctypes
import math
import runpy
import sys
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from deepum import paths
from deepum.errors import EXIT_USAGE, DeepumError, UsageError

_PREFIX = "deepum_arena_allocator_"


@dataclass(frozen=True)
class Statistics:
    """Of one device, since it was first used; peaks since they were last reset. Fields are those of
    `deepum_arena_allocator_statistics` (native/arena_allocator/arena_allocator.h).
    """

    live_bytes: int  # handed out
    peak_live_bytes: int
    allocated_bytes: int  # ever handed out
    held_bytes: int  # of the driver: arena, and pool
    peak_held_bytes: int
    arena_bytes: int
    arena_live_bytes: int
    plan_bytes: int  # height of the plan that is followed, or was last; 0: none
    plan_load_bytes: int  # the most of its buffers that live at one time: the lower bound
    plan_requests: int
    plan_excluded_bytes: int  # what outlives an iteration or is of another stream
    requests: int
    planned: int  # requests served at their planned offsets
    conflicts: int  # whose planned range was in use
    unplanned: int  # of a followed iteration without an offset
    deviating: int  # that were not those of a plan
    iterations: int  # planned ones that began
    plans: int
    driver_calls: int
    failures: int
    plan_seconds: float


class _Native(ctypes.Structure):
    _fields_ = tuple(
        (one.name, ctypes.c_double if one.type == "float" else ctypes.c_int64)
        for one in fields(Statistics)
    )


@cache
def _library() -> ctypes.CDLL:
    """Raises DeepumError."""
    loaded = ctypes.CDLL(str(paths.arena_allocator()))
    loaded.deepum_arena_allocator_configure.argtypes = [ctypes.c_double, ctypes.c_int]
    return loaded


def _torch() -> Any:
    """Raises UsageError."""
    try:
        import torch
    except ImportError:
        raise UsageError("arena: PyTorch is missing; install its CUDA build") from None
    if not hasattr(torch._C, "_cuda_customAllocator"):
        raise UsageError("arena: this PyTorch was built without CUDA; install its CUDA build")
    return torch


def install(*, seconds: float = 1.0, in_background: bool = True) -> None:
    """PyTorch's memory on GPUs comes of the arena from now on, as long as the process lives.
    seconds: what the search for an iteration's arena may take. in_background: the search has a
    thread of its own; else the request that ends the iteration waits for it, and the same program
    has the same offsets each time. Raises UsageError, as where PyTorch has allocated already.
    """
    if not (math.isfinite(seconds) and seconds >= 0):
        raise UsageError(f"arena: seconds {seconds}; give a number from 0 on")
    torch = _torch()
    library = _library()
    library.deepum_arena_allocator_configure(seconds, in_background)
    if _installed:
        return
    allocator = torch.cuda.memory.CUDAPluggableAllocator(
        str(paths.arena_allocator()), f"{_PREFIX}allocate", f"{_PREFIX}free"
    )
    native = allocator.allocator()
    native.set_record_stream_fn(_address("record_stream"))
    native.set_reset_fn(_address("reset"))
    native.set_memory_fraction_fn(_address("set_memory_fraction"))
    native.set_begin_allocate_to_pool(_address("refuse_pool"))
    try:
        torch.cuda.memory.change_current_allocator(allocator)
    except RuntimeError:
        raise UsageError(
            "arena: PyTorch has allocated on the GPU already; install the arena before that"
        ) from None
    _installed.append(allocator)
    _count_by_arena(torch)


_installed: list[Any] = []  # PyTorch keeps what it has from it, not the object


def statistics(device: int = 0) -> Statistics:
    """Of the device of that number. Raises UsageError where there cannot be one."""
    native = _Native()
    if not _library().deepum_arena_allocator_get_statistics(device, ctypes.byref(native)):
        raise UsageError(f"arena: device {device}; give the number of a GPU")
    return Statistics(**{one.name: getattr(native, one.name) for one in fields(Statistics)})


def reset_peaks(device: int = 0) -> None:
    """Peaks are what is there now."""
    _library().deepum_arena_allocator_reset_peaks(device)


def _address(name: str) -> int:
    function = getattr(_library(), _PREFIX + name)
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


def _count_by_arena(torch: Any) -> None:
    """PyTorch has no statistics of pluggable allocators: `torch.cuda.memory_allocated` and the like
    raise. They tell ours.
    """
    memory = torch.cuda.memory

    def number(device: Any) -> int:
        return int(memory._get_device_index(device, optional=True))

    def nested(device: Any = None) -> dict[str, Any]:
        figures = statistics(number(device))
        live = {
            "current": figures.live_bytes,
            "peak": figures.peak_live_bytes,
            "allocated": figures.allocated_bytes,
            "freed": figures.allocated_bytes - figures.live_bytes,
        }
        held = {"current": figures.held_bytes, "peak": figures.peak_held_bytes}
        return {
            "allocated_bytes": {"all": live},
            "active_bytes": {"all": live},
            "reserved_bytes": {"all": held},
            "num_ooms": figures.failures,
        }

    def reset(device: Any = None) -> None:
        reset_peaks(number(device))

    for module in (memory, torch.cuda):
        module.memory_stats_as_nested_dict = nested
        module.reset_peak_memory_stats = reset


def main() -> int:
    """Runs the script with the arena installed."""
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print("deepum: error: arena: no script; give its file and arguments", file=sys.stderr)
        return EXIT_USAGE
    script = Path(sys.argv[1])
    try:
        if not script.is_file():
            raise UsageError(f"arena {script}: no such file; name a script in Python")
        install()
    except DeepumError as error:
        print(error.line, file=sys.stderr)
        return error.exit_code
    del sys.argv[0]
    sys.path[0] = str(script.resolve().parent)
    runpy.run_path(str(script), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
