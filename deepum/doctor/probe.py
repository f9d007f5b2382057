"""The process that asks the driver: `python -m deepum.doctor.probe ORDINAL simulated|real` prints
what it found as JSON.

A process of its own, since a driver may hang or crash.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from deepum.doctor import cupti, link, uvm_tools
from deepum.doctor.driver import Cuda, CudaError, UnsafeError

# What the shim would use, in the form it asks for: name, CUDA version of the form.
CALLS = {
    "cuMemPrefetchAsync": 8000,
    "cuMemPrefetchBatchAsync": 13000,
    "cuMemDiscardBatchAsync": 13000,
    "cuMemDiscardAndPrefetchBatchAsync": 13000,
    "cuFuncGetParamInfo": 12040,
    "cuFuncGetName": 12030,
    "cuLaunchKernelEx": 11060,
}
_ATTRIBUTES = (
    "MANAGED_MEMORY",
    "CONCURRENT_MANAGED_ACCESS",
    "PAGEABLE_MEMORY_ACCESS",
    "PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES",
    "HOST_NATIVE_ATOMIC_SUPPORTED",
    "DIRECT_MANAGED_MEM_ACCESS_FROM_HOST",
    "ASYNC_ENGINE_COUNT",
)


def _device(cuda: Cuda, ordinal: int) -> dict[str, Any]:
    device = cuda("cuDeviceGet", ordinal)
    name = cuda("cuDeviceGetName", 256, device)
    return {
        "ordinal": ordinal,
        "name": name.split(b"\0")[0].decode(errors="replace"),
        "capability": [
            cuda.attribute(f"COMPUTE_CAPABILITY_{part}", device) for part in ("MAJOR", "MINOR")
        ],
        "memory_bytes": int(cuda("cuDeviceTotalMem", device)),
        "attributes": {
            attribute.lower(): cuda.attribute(attribute, device) for attribute in _ATTRIBUTES
        },
    }


def examine(ordinal: int, simulated: bool, tell: Callable[[dict[str, Any]], None]) -> None:
    """Tells what is known so far, more each time: what hangs takes only what comes after it. Raises
    CudaError, ImportError.
    """
    cuda = Cuda(ordinal)
    known: dict[str, Any] = {
        "cuda_version": int(cuda("cuDriverGetVersion")),
        "devices": [_device(cuda, index) for index in range(int(cuda("cuDeviceGetCount")))],
        "free_bytes": cuda.free_bytes(),
        "calls": {name: cuda.has(name, version) for name, version in CALLS.items()},
    }
    tell(known)
    if known["devices"][ordinal]["attributes"]["concurrent_managed_access"]:
        try:
            known["link"] = link.measure(cuda, simulated)
        except (CudaError, UnsafeError) as error:
            known["link"] = {"error": str(error)}
        tell(known)
    known["cupti"] = cupti.examine(ordinal)
    tell(known)
    known["uvm_tools"] = uvm_tools.examine()
    tell(known)


def main() -> None:
    """One line of JSON each time there is more; the last counts."""
    try:
        examine(
            int(sys.argv[1]),
            sys.argv[2] == "simulated",
            lambda known: print(json.dumps(known), flush=True),
        )
    except CudaError as error:
        print(json.dumps({"error": str(error)}), flush=True)
    os._exit(0)  # CUPTI may still call back, into an interpreter that is being taken down


if __name__ == "__main__":
    main()
