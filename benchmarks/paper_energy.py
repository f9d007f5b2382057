"""A power model, so that energy can be told without a meter. It is a model: [?] marks what is our
assumption.

Energy a step = (waiting + host) x time of the step + (busy - waiting) x time of its kernels + bytes
moved x energy a byte.

The kernels take as long as with unlimited memory, whatever the policy; the rest of a step the GPU
waits, with its clocks up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

_BITS = 8
_PJ = 1e-12


@dataclass(frozen=True)
class Power:
    """Watts, and picojoules a bit that crosses the link: read in one memory, sent, written in the
    other.
    """

    name: str
    busy_w: float
    waiting_w: float
    host_w: float
    device_memory_pj: float
    host_memory_pj: float
    link_pj: float

    def joules(self, step_ms: float, kernels_ms: float, moved_bytes: float) -> float:
        """Of a step."""
        moving = (
            moved_bytes * _BITS * _PJ * (self.device_memory_pj + self.host_memory_pj + self.link_pj)
        )
        return (
            (self.waiting_w + self.host_w) * step_ms + (self.busy_w - self.waiting_w) * kernels_ms
        ) / 1e3 + moving

    def as_json(self) -> dict[str, Any]:
        """Its figures."""
        return asdict(self)


SOURCES = {
    "busy_w": (
        "the card's limit: NVIDIA, Tesla V100 PCIe Product Brief, PB-08744-001; training draws "
        "somewhat less [?]"
    ),
    "waiting_w": "a context is open, clocks are up, no kernel runs [?]",
    "host_w": "processors, memory and board while the GPU works [?]",
    "device_memory_pj": "HBM2: O'Connor et al., Fine-Grained DRAM, MICRO-50 (2017)",
    "host_memory_pj": "DDR4 with its interface [?]",
    "link_pj": "PCIe 3.0, both ends [?]",
}
V100 = Power(
    "V100 PCIe",
    busy_w=250,
    waiting_w=55,
    host_w=150,
    device_memory_pj=3.9,
    host_memory_pj=20,
    link_pj=10,
)


def joules(simulation: Mapping[str, Any], policy: str, power: Power = V100) -> float | None:
    """Of a policy's step in a simulation as `deepum simulate --json` writes it; None where it has
    no time.
    """
    row = simulation["policies"].get(policy, {})
    if not row.get("step_ms"):
        return None
    moved = row["a_step"]["bytes_h2d"] + row["a_step"]["bytes_d2h"]
    return power.joules(row["step_ms"], simulation["policies"]["unlimited"]["step_ms"], moved)
