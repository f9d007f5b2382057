"""The presets of the simulated GPU (native/um_model/machine.hpp)."""

from __future__ import annotations

from dataclasses import dataclass

from deepum._core import ffi, lib


@dataclass(frozen=True)
class Machine:
    """A host with its GPU: sizes in bytes, rates in GFLOP/s and GB/s (10^9), times in nanoseconds, sustained: of the peak."""

    name: str
    description: str
    gpu_name: str
    memory_bytes: int
    presented_major: int
    presented_minor: int
    multiprocessors: int
    launch_queue: int
    fp32_gflops: float
    tensor_gflops: float
    memory_gbps: float
    fp32_sustained: float
    tensor_sustained: float
    memory_sustained: float
    h2d_gbps: float
    d2h_gbps: float
    fault_batch_ns: float
    fault_ns_per_byte: float
    fault_batch_no_prefetcher_ns: float
    fault_ns_per_byte_no_prefetcher: float
    eviction_ns_per_block: float
    launch_ns: float
    decision_latency_ns: float
    host_memory_bytes: int  # 0: as much as there is to hold
    disk_read_gbps: float  # of the disk behind it; 0: none
    disk_write_gbps: float
    disk_read_latency_ns: float
    disk_write_latency_ns: float
    disk_buffer_bytes: int
    host_keeps: int  # 1: what comes to a full host goes to the disk; 0: what the host used longest ago does


def machines() -> list[Machine]:
    """All presets, in their own order."""
    known = []
    native = ffi.new("deepum_machine *")
    for index in range(int(lib.deepum_machine_count())):
        if lib.deepum_machine_get(index, native) != 0:
            break
        values = {name: getattr(native, name) for name in Machine.__dataclass_fields__}
        known.append(
            Machine(**{name: ffi.string(value).decode() if isinstance(value, ffi.CData) else value for name, value in values.items()})
        )
    return known
