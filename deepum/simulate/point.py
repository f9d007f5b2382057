"""A point of a sweep: a workload on a machine under policies."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from deepum.core import UM_BLOCK_BYTES
from deepum.errors import UsageError
from deepum.simulate.comparison import Comparison, compare
from deepum.simulate.driver import Driver
from deepum.simulate.footprint import footprint
from deepum.simulate.host import Host
from deepum.simulate.mode import DEFAULT, Mode
from deepum.simulate.policies import Policy
from deepum.simulate.preset import preset_of
from deepum.simulate.relaxation import linear_bound_ns
from deepum.simulate.steps import WARM_UP
from deepum.simulate.workload import load


@dataclass(frozen=True)
class Point:
    """What `deepum simulate` takes, of one workload; None: what the workload or the machine has.
    `pressure`: what is allocated at most over the card's memory, instead of `memory_bytes`, so that
    machines of any size are compared alike. `linear_bound`: it is solved for as well, which takes
    seconds.
    """

    workload: str
    policies: tuple[Policy, ...]
    machine: str | None = None
    memory_bytes: int | None = None
    launch_queue: int | None = None
    steps: int | None = None
    synchronise: bool = False
    pressure: float | None = None
    host: Host = field(default_factory=Host)
    warm_up: int = WARM_UP
    driver: Driver = field(default_factory=Driver)
    mode: Mode = DEFAULT
    linear_bound: bool = False

    def __str__(self) -> str:
        return self.workload if self.machine is None else f"{self.workload} on {self.machine}"


def simulate(point: Point) -> Comparison:
    """Loads, captures if need be, and replays it. Raises DeepumError and UsageError."""
    loaded = load(point.workload, point.steps, point.synchronise, point.machine)
    memory = point.memory_bytes
    if point.pressure is not None:
        memory = (
            int(footprint(loaded.trace).allocated / point.pressure)
            // UM_BLOCK_BYTES
            * UM_BLOCK_BYTES
        )
        if not memory:
            raise UsageError(
                f"workload {point.workload}: reports no allocated memory; give the card's "
                f"memory instead of a pressure"
            )
    machine = point.machine or loaded.machine
    # First, since it ends the point where HiGHS is missing.
    linear = (
        linear_bound_ns(loaded, machine, memory, point.driver.handling(preset_of(machine)))
        if point.linear_bound
        else None
    )
    found = compare(
        loaded,
        machine,
        point.policies,
        memory,
        point.launch_queue,
        point.host,
        point.warm_up,
        point.driver,
        point.mode,
    )
    return replace(found, linear_bound_ns=linear)
