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
