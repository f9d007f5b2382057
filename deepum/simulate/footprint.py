"""How much memory a trace takes at most."""

from __future__ import annotations

from dataclasses import dataclass

from deepum.core import Allocate, Block, Free, events
from deepum.trace import Trace


@dataclass(frozen=True)
class Footprint:
    """Bytes, the most at a time. `allocated`: in PyTorch's blocks that are handed out; 0 without
    its reports. `managed`: allocated from the driver, which under unified memory is what the host
    must be able to hold.
    """

    allocated: int
    managed: int


def footprint(trace: Trace) -> Footprint:
    """Of all of it. Raises ValueError for damaged events."""
    allocated = managed = most = 0
    sizes: dict[int, int] = {}  # by slot
    for event in events(trace.events):
        if isinstance(event, Block):
            allocated = max(allocated, event.allocated_bytes)
        elif isinstance(event, Allocate):
            # Announced once more: the same, or another in its place.
            managed += event.bytes - sizes.get(event.slot, 0)
            sizes[event.slot] = event.bytes
            most = max(most, managed)
        elif isinstance(event, Free):
            managed -= sizes.pop(event.slot, 0)
    return Footprint(allocated, most)
