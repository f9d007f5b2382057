"""Whether CUPTI would tell of page faults: found, and tried as the shim would use it
(docs/observed-accesses.md).
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_NAMES = ("libcupti.so.13", "libcupti.so.12")
# Numbers of cupti_activity.h, as in native/cupti_abi/cupti_abi.h.
_KIND_UNIFIED_MEMORY_COUNTER = 25
_SCOPE_SINGLE_DEVICE, _COUNTER_GPU_PAGE_FAULT = 1, 4
_ERRORS = {
    27: "is not supported",
    28: "unified memory profiling is not supported",
    29: "unified memory profiling is not supported on this device",
    31: "unified memory profiling is not supported under MPS",
    33: "is not supported on virtual GPUs",
    35: "the driver lets only the superuser profile",
    36: "another profiler is in the way",
    39: "another profiler is subscribed",
    40: "the hypervisor does not let this virtual GPU profile",
    41: "is not supported with Confidential Computing",
    43: "is not supported on MIG instances",
    45: "is not supported under WSL2",
}


class Counter(ctypes.Structure):
    """CUpti_ActivityUnifiedMemoryCounterConfig."""

    _fields_ = (
        ("scope", ctypes.c_int32),
        ("kind", ctypes.c_int32),
        ("device", ctypes.c_uint32),
        ("enable", ctypes.c_uint32),
    )


REQUESTED = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.POINTER(ctypes.c_size_t),
)
COMPLETED = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
)


def _places() -> Iterator[str]:
    """Where the shim looks too: the loader's places, beside libcudart (a wheel has both in one
    folder), a toolkit.
    """
    yield from _NAMES
    found = importlib.util.find_spec("nvidia")
    for place in found.submodule_search_locations or () if found else ():
        for below in ("cu13/lib", "cuda_cupti/lib"):
            yield from (str(Path(place, below, name)) for name in _NAMES)
    for root in (os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        for below in ("extras/CUPTI/lib64", "lib64"):
            yield from (str(Path(root, below, name)) for name in _NAMES if root)


def load() -> tuple[str, Any] | None:
    """CUPTI and where it was found; None without."""
    for place in _places():
        try:
            return place, ctypes.CDLL(place)
        except OSError:
            continue
    return None


def examine(device: int) -> dict[str, Any] | None:
    """`path`, `version`, and `error` (None: faults would be told) on that device; None without
    CUPTI. To be asked last in a process: it leaves CUPTI loaded.
    """
    loaded = load()
    if loaded is None:
        return None
    path, library = loaded
    version = ctypes.c_uint32()
    library.cuptiGetVersion(ctypes.byref(version))
    return {"path": path, "version": version.value, "error": _try(library, device)}


def _try(library: Any, device: int) -> str | None:
    buffers: list[Any] = []

    def requested(buffer: Any, size: Any, records: Any) -> None:
        buffers.append(ctypes.create_string_buffer(1 << 16))
        buffer[0], size[0], records[0] = ctypes.addressof(buffers[-1]), 1 << 16, 0

    def completed(*_: Any) -> None:
        return

    callbacks = REQUESTED(requested), COMPLETED(completed)
    _kept.append((callbacks, buffers))  # CUPTI may call until the process ends
    counter = Counter(_SCOPE_SINGLE_DEVICE, _COUNTER_GPU_PAGE_FAULT, device, 1)
    steps: tuple[tuple[str, tuple[Any, ...]], ...] = (
        ("cuptiActivityRegisterCallbacks", callbacks),
        ("cuptiActivityConfigureUnifiedMemoryCounter", (ctypes.byref(counter), 1)),
        ("cuptiActivityEnable", (_KIND_UNIFIED_MEMORY_COUNTER,)),
    )
    for name, arguments in steps:
        if code := int(getattr(library, name)(*arguments)):
            return _ERRORS.get(code, f"CUPTI error {code}")
    library.cuptiActivityDisable(_KIND_UNIFIED_MEMORY_COUNTER)
    return None


_kept: list[Any] = []
