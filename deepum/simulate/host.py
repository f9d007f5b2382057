"""The host of a simulated machine: memory of a size, a disk behind it, and what a workload needs of
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deepum._core import ffi, lib
from deepum.simulate.footprint import footprint
from deepum.trace import Trace

# Whose latencies and buffers a disk has, where the machine has none of its own.
_DISK_OF = "a100-40gb-g10-ssd"


@dataclass(frozen=True)
class Host:
    """What differs from the machine's own. `memory_bytes`: for managed memory, 0: as much as there
    is to hold. `disk_gbps`: each way, 0: no disk.
    """

    memory_bytes: int | None = None
    disk_gbps: float | None = None

    def figures(self, preset: Any) -> dict[str, float]:
        """The figures of `deepum_machine` to be changed on that machine."""
        changed: dict[str, float] = {}
        if self.memory_bytes is not None:
            changed["host_memory_bytes"] = self.memory_bytes
        if self.disk_gbps is not None:
            changed |= {"disk_read_gbps": self.disk_gbps, "disk_write_gbps": self.disk_gbps}
            if self.disk_gbps and not preset.disk_read_gbps:
                like = ffi.new("deepum_machine *")
                lib.deepum_machine_find(_DISK_OF.encode(), like)
                changed |= {
                    name: getattr(like, name)
                    for name in (
                        "disk_read_latency_ns",
                        "disk_write_latency_ns",
                        "disk_buffer_bytes",
                    )
                }
        return changed


def fits_host(trace: Trace, host_bytes: int) -> bool:
    """Whether a host of that size can back all managed memory of the program, wherever it is.

    It counts nothing as being on the device alone: each byte has its place in the host's memory.
    `compare` asks for less: that under a policy the host can hold what is not on the device. Raises
    ValueError for damaged events.
    """
    return footprint(trace).managed <= host_bytes
