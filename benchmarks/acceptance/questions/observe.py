"""Which ways of seeing the driver's work are there: CUPTI, /dev/nvidia-uvm-tools? And does the
latter tell of a kernel's faults?
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from acceptance.bench import BLOCK, Bench
from deepum import host
from deepum.doctor import cupti, uvm_tools
from deepum.doctor.driver import CudaError

_TOOLS = Path("/dev/nvidia-uvm-tools")
_BLOCKS = 8  # of the probe


def answer(bench: Bench) -> dict[str, Any]:
    findings: dict[str, Any] = {
        "cupti": cupti.examine(int(bench.cuda.device)),
        "uvm_tools": {"there": _TOOLS.exists()},
    }
    if _TOOLS.exists():
        try:
            os.close(os.open(_TOOLS, os.O_RDWR | os.O_CLOEXEC))
            findings["uvm_tools"]["opens"] = True
        except OSError as error:
            findings["uvm_tools"]["opens"] = error.strerror
    findings["uvm_tools"] |= uvm_tools.examine()
    if findings["uvm_tools"]["error"] is None:
        findings["uvm_tools"]["probe"] = _probe(bench)
    driver = host.kernel_driver()
    findings["kernel_driver"] = (
        {"version": driver.text, "open": driver.open} if driver is not None else None
    )
    # The module's settings, where they can be read: the prefetcher, its threshold, HMM.
    parameters = Path("/sys/module/nvidia_uvm/parameters")
    findings["module_parameters"] = {
        path.name: host.read(str(path.relative_to("/"))).strip()
        for path in sorted(parameters.glob("*"))
    }
    return findings


def _probe(bench: Bench) -> dict[str, Any]:
    """What a queue tells of memory that is on the host and that a kernel reads, then of such memory
    that it writes: by access, in the blocks that were touched (`blocks_missed`, `blocks_besides`),
    and how much of it is no record of a fault (`strange`).
    """
    size = min(_BLOCKS * BLOCK, bench.whole(_BLOCKS * BLOCK))
    memory = bench.cuda.managed(size)
    touched = set(range(memory // BLOCK, (memory + size - 1) // BLOCK + 1))
    findings: dict[str, Any] = {"blocks": len(touched)}
    try:
        queue = uvm_tools.Queue()
        for does in ("read", "write"):
            bench.fill(memory, size, 1)
            bench.put(memory, size, bench.cuda.host)
            queue.enable()
            queue.take()  # what came before
            ms = bench.milliseconds(lambda: bench.sweep(does, memory, size))  # noqa: B023 - called at once
            bench.wait()
            seen = queue.take()
            queue.disable()
            findings[does] = {
                "ms": ms,
                "faults": seen.faults,
                "batches": len(seen.batches),
                "blocks_missed": len(touched - seen.blocks),
                "blocks_besides": len(seen.blocks - touched),
                "dropped": seen.dropped,
                "strange": seen.strange,
            }
        queue.close()
    except (uvm_tools.UnusableError, CudaError, OSError) as error:  # what was found before is kept
        findings["error"] = str(error)
    bench.cuda.free(memory)
    return findings
