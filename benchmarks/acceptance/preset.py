"""What the answers say of the machine in the terms of the unified memory model (native/um_model/machine.hpp), for a preset made of them."""

from __future__ import annotations

from typing import Any


def preset(questions: dict[str, Any]) -> dict[str, float | int | None]:
    """Figures by the names of `deepum.machines.Machine`; None for what was not answered. Rates are those of prefetches, which is what
    the model's link is for; the fault batch is the start of the line through sweeps that a batch holds."""

    def get(*path: str) -> Any:
        at: Any = questions
        for name in path:
            at = at.get(name) if isinstance(at, dict) else None
        return at

    slope, base, launch = get("faults", "swept_fit", "us_per_kib"), get("faults", "swept_fit", "base_us"), get("launches", "launch_host_us")
    return {
        "h2d_gbps": get("links", "one_way", "to_gpu_prefetch"),
        "d2h_gbps": get("links", "one_way", "to_host_prefetch"),
        "fault_batch_ns": None if base is None else round(base * 1e3),
        "fault_ns_per_byte": None if slope is None else round(slope * 1e3 / 1024, 5),
        "launch_ns": None if launch is None else round(launch * 1e3),
        "launch_queue": get("launches", "launch_queue"),
    }
