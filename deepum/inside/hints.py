"""Hints about tensors, given as advice to the driver, where the shim sees it: `cuMemAdvise` and
`cuMemPrefetchAsync` of CUDA's driver API.
"""

from __future__ import annotations

import ctypes
from typing import Any

from deepum.errors import UsageError

HINTS = ("keep", "cold", "none")
_SUCCESS = 0
_SET_PREFERRED_LOCATION, _UNSET_PREFERRED_LOCATION = 3, 4
_CPU = -1
_UM_BLOCK_BYTES = 2 << 20


def give(tensor: Any, what: str) -> bool:
    """Of the memory that a PyTorch tensor's storage has on a GPU; whether the driver took it.
    Raises UsageError for what cannot be hinted.
    """
    if what not in HINTS:
        raise UsageError(f"deepum.hint: '{what}': is unknown; choose from {', '.join(HINTS)}")
    if not getattr(tensor, "is_cuda", False):
        raise UsageError("deepum.hint: the tensor is not on a GPU; move it there first")
    import torch

    storage = tensor.untyped_storage()
    start, size = storage.data_ptr(), storage.nbytes()
    device = tensor.device.index or 0
    driver = ctypes.CDLL("libcuda.so.1")
    if what == "cold":
        # Other tensors share the UM blocks at both ends.
        first = -(-start // _UM_BLOCK_BYTES) * _UM_BLOCK_BYTES
        last = (start + size) // _UM_BLOCK_BYTES * _UM_BLOCK_BYTES
        stream = torch.cuda.current_stream(device).cuda_stream
        return first < last and _prefetch(driver, first, last - first, stream)
    handle = ctypes.c_int()
    if driver.cuDeviceGet(ctypes.byref(handle), ctypes.c_int(device)) != _SUCCESS:
        return False
    advice = _SET_PREFERRED_LOCATION if what == "keep" else _UNSET_PREFERRED_LOCATION
    taken = driver.cuMemAdvise(
        ctypes.c_ulonglong(start), ctypes.c_size_t(size), ctypes.c_int(advice), handle
    )
    return bool(taken == _SUCCESS)


def _prefetch(driver: ctypes.CDLL, start: int, size: int, stream: int) -> bool:
    """To the host, behind what was launched on the stream."""
    taken = driver.cuMemPrefetchAsync(
        ctypes.c_ulonglong(start),
        ctypes.c_size_t(size),
        ctypes.c_int(_CPU),
        ctypes.c_void_p(stream),
    )
    return bool(taken == _SUCCESS)
