"""The latest launches, and where it was before as it is now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from reference.memory.torch_blocks import MASK, mix
from reference.prediction.execution_table import Execution


@dataclass
class PastLaunch:
    hash: int
    kernel: int
    execution: Execution
    device: int
    growth: int = 0  # blocks with new content since the launch before it, less those that died,
    died_away: int = 0  # of which so many were not on the device

    def needs(self) -> int:
        """Blocks besides what was there before."""
        return self.growth + self.died_away


class Recollection(NamedTuple):
    """A place in the history, and how well what led up to it agrees with what led up to the
    present.
    """

    place: int | None = None
    agreement: int = 0  # 1 one execution, 2 many kernels, 3 some executions, 4 many


class LaunchHistory:
    """Never full, in what is compared."""

    def __init__(self) -> None:
        self.launches: list[PastLaunch] = []
        # By context modulo the size: the context and the latest place of it.
        self.places: dict[int, tuple[int, int]] = {}
        self.size = 0
        self.recalled = Recollection()

    def append(self, launch: PastLaunch) -> None:
        self.launches.append(launch)
        wanted = 64 * 4
        while wanted < 4 * len(self.launches):
            wanted *= 2
        if wanted > self.size:
            self.size, old = wanted, sorted(self.places.values(), key=lambda value: value[1])
            self.places = {context % wanted: (context, place) for context, place in old}
        self.recalled = Recollection()
        for level, context in enumerate(self.contexts()):
            if context:
                known = self.places.get(context % self.size)
                if known is not None and known[0] == context:
                    self.recalled = Recollection(known[1], level + 1)
                self.places[context % self.size] = (context, len(self.launches) - 1)

    def at(self, place: int | None) -> PastLaunch | None:
        return self.launches[place] if place is not None and place < len(self.launches) else None

    def contexts(self) -> list[int]:
        found = [0, 0, 0, 0]
        executions = 0
        for back in range(1, min(8, len(self.launches)) + 1):
            executions = mix(executions + self.launches[-back].hash & MASK)
            if back in (1, 4, 8):
                found[{1: 0, 4: 2, 8: 3}[back]] = executions + back & MASK
        if len(self.launches) >= 32:
            kernels = 0
            for past in self.launches[-32:]:
                kernels = kernels * 0x9E3779B97F4A7C15 + past.kernel & MASK
            found[1] = mix(kernels)
        return found
