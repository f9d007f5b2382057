"""Which ways of seeing the driver's work are there: CUPTI, /dev/nvidia-uvm-tools?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from acceptance.bench import Bench
from deepum import host
from deepum.doctor import cupti

_TOOLS = Path("/dev/nvidia-uvm-tools")


def answer(bench: Bench) -> dict[str, Any]:
    told: dict[str, Any] = {"cupti": cupti.examine(int(bench.cuda.device)), "uvm_tools": {"there": _TOOLS.exists()}}
    if _TOOLS.exists():
        try:
            os.close(os.open(_TOOLS, os.O_RDWR | os.O_CLOEXEC))
            told["uvm_tools"]["opens"] = True
        except OSError as error:
            told["uvm_tools"]["opens"] = error.strerror
    driver = host.kernel_driver()
    told["kernel_driver"] = {"version": driver.text, "open": driver.open} if driver is not None else None
    # The module's settings, where they can be read: the prefetcher, its threshold, HMM.
    parameters = Path("/sys/module/nvidia_uvm/parameters")
    told["module_parameters"] = {path.name: host.read(str(path.relative_to("/"))).strip() for path in sorted(parameters.glob("*"))}
    return told
