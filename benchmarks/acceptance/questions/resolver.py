"""Are the functions that cuGetProcAddress hands out the library's exported symbols? If so, a hook
knows by the address which one it is.
"""

from __future__ import annotations

import ctypes
from typing import Any

from acceptance.bench import Bench

_SYMBOLS = (
    ("cuMemAlloc", 3020),
    ("cuMemFree", 3020),
    ("cuMemGetInfo", 3020),
    ("cuMemAllocManaged", 6000),
    ("cuMemcpyHtoDAsync", 7000),
    ("cuLaunchKernel", 7000),
    ("cuLaunchKernelEx", 11060),
    ("cuMemPrefetchAsync", 8000),
    ("cuMemPrefetchAsync", 12020),
    ("cuMemAdvise", 8000),
    ("cuMemAdvise", 12020),
    ("cuStreamSynchronize", 7000),
)
_FORMS = ("", "_v2", "_v3", "_ptsz", "_v2_ptsz", "_ptds", "_v2_ptds")
_PER_THREAD = 2  # CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM


def answer(bench: Bench) -> dict[str, Any]:
    library = ctypes.CDLL("libcuda.so.1")
    findings: dict[str, Any] = {}
    for name, version in _SYMBOLS:
        exported = {}
        for form in _FORMS:
            symbol = getattr(library, name + form, None)
            if symbol is not None:
                exported[ctypes.cast(symbol, ctypes.c_void_p).value] = name + form
        for flags, kind in ((0, "default"), (_PER_THREAD, "per_thread")):
            pointer = int(bench.cuda("cuGetProcAddress", name.encode(), version, flags)[0])
            findings[f"{name} {version} {kind}"] = exported.get(pointer, "no exported symbol")
    return findings
