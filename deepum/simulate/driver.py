"""What a driver may cost and do, where no GPU has answered yet: kind to unkind figures of the same
machine (docs/um-model.md, Costs).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deepum.simulate.bound import Handling

# Of a prefetch: the driver's handling of a UM block in ns, and the factor by which both directions
# slow each other down.
COSTS = {"kind": (0.0, 1.0), "expected": (11e3, 1.1), "unkind": (22e3, 1.25)}
DISCARDS = {"ideal": 0, "driver": 1, "refused": 2}  # enum Discards of native/um_model/machine.hpp
# Calls that block until their stream has come to them; enum Blocking of the same file.
BLOCKING = {"none": 0, "prefetches": 1, "all": 2}
# Of paging on demand: what remains of the handling that was measured on a Titan V, in a batch, for
# its bytes, and for an eviction.
FAULTS = {"titan-v": 1.0, "half": 0.5, "free": 0.0}
_BLOCK = 2 << 20


@dataclass(frozen=True)
class Driver:
    """What differs from the machine's own; None: nothing. `costs`, `discards`, `faults`,
    `blocking`: keys of COSTS, DISCARDS, FAULTS, BLOCKING.

    `capacity_error`: bytes by which the capacity that is told at the start is too high, or too low
    where it is negative. `tells_free_memory`: its free memory counts managed memory, so that it
    tells of that error.
    """

    costs: str | None = None
    discards: str | None = None
    faults: str | None = None
    capacity_error: int = 0
    tells_free_memory: bool = True
    blocking: str | None = None

    def figures(self, preset: Any) -> dict[str, float]:
        """The figures of `deepum_machine` to be changed on that machine."""
        changed: dict[str, float] = {}
        if self.costs is not None:
            changed["block_ns"], changed["both_ways"] = COSTS[self.costs]
        if self.discards is not None:
            changed["discards"] = DISCARDS[self.discards]
        if self.blocking is not None:
            changed["blocking_calls"] = BLOCKING[self.blocking]
        if self.faults is not None:
            share, link = FAULTS[self.faults], 1 / preset.h2d_gbps
            copy = _BLOCK / preset.d2h_gbps
            changed["fault_batch_ns"] = share * preset.fault_batch_ns
            changed["fault_ns_per_byte"] = link + share * max(preset.fault_ns_per_byte - link, 0.0)
            if preset.eviction_ns_per_block:
                changed["eviction_ns_per_block"] = copy + share * max(
                    preset.eviction_ns_per_block - copy, 0.0
                )
        return changed

    def handling(self, preset: Any) -> Handling:
        """What a prefetch costs beside its bytes."""
        figures = self.figures(preset)
        return Handling(
            float(figures.get("block_ns", preset.block_ns)),
            float(figures.get("both_ways", preset.both_ways)),
        )

    def as_json(self) -> dict[str, str | int | None]:
        """For the results of a simulation: None is the machine's own."""
        named = {
            "costs": self.costs,
            "discards": self.discards,
            "faults": self.faults,
            "blocking": self.blocking,
        }
        return {
            **named,
            "capacity_error_bytes": self.capacity_error,
            "tells_free_memory": self.tells_free_memory,
        }


# Ends and middle of what a driver may cost and do: to a policy by costs and discards, to its
# speed-up over paging by what paging costs.
BAND = {
    "kind": Driver("kind", "ideal", "titan-v"),
    "expected": Driver("expected", "driver", "half"),
    "unkind": Driver("unkind", "driver", "free"),
}
