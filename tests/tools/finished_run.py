"""What a `deepum run` with --stats left, from whatever folder of tests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

MIB = 1 << 20
# `--gpu-memory` is then no smaller card: the machine has all of its memory, as a real one would.
SOFT = {"DEEPUM_SIM_SOFT_BUDGET": "1"}


@dataclass(frozen=True)
class Ran:
    """What a run left: its output, and the object that --stats writes."""

    out: str
    err: str
    statistics: dict[str, Any]

    @property
    def simulated(self) -> dict[str, Any]:
        """The simulated GPU's own counters."""
        counted: dict[str, Any] = self.statistics["processes"][0]["simulated"]
        return counted

    @property
    def core(self) -> dict[str, Any]:
        """The decision core's counters."""
        counted: dict[str, Any] = self.statistics["processes"][0]["session"]["core"]
        return counted

    @property
    def facts(self) -> dict[str, Any]:
        """What the program told by its last line, JSON."""
        return dict(json.loads(self.out.splitlines()[-1]))

    def between_waits(self, counter: str, last: int) -> list[int]:
        """How much the simulated GPU's counter rose from one of the program's waits to the next, at
        the last of them.
        """
        points = [int(point[counter]) for point in self.simulated["timeline"]]
        return [
            after - before
            for before, after in zip(points[-last - 1 : -1], points[-last:], strict=True)
        ]
