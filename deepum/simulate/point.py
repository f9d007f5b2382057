"""A point of a sweep: a workload on a machine under policies."""

from __future__ import annotations

from dataclasses import dataclass

from deepum.simulate.comparison import Comparison, compare
from deepum.simulate.policies import Policy
from deepum.simulate.workload import load


@dataclass(frozen=True)
class Point:
    """What `deepum simulate` takes, of one workload; None: what the workload or the machine has."""

    workload: str
    policies: tuple[Policy, ...]
    machine: str | None = None
    memory_bytes: int | None = None
    launch_queue: int | None = None
    steps: int | None = None
    synchronise: bool = False

    def __str__(self) -> str:
        return self.workload if self.machine is None else f"{self.workload} on {self.machine}"


def simulate(point: Point) -> Comparison:
    """Loads, captures if need be, and replays it. Raises DeepumError and UsageError."""
    loaded = load(point.workload, point.steps, point.synchronise, point.machine)
    return compare(loaded, point.machine or loaded.machine, point.policies, point.memory_bytes, point.launch_queue)
