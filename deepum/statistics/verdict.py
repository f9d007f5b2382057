"""What limits a run, and what to try: rules on plain figures, which the summary, `deepum compare`
and the report share (docs/usage.md, What limits).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# Lost below this share of the time, there is nothing to gain from memory.
LITTLE = 0.1
# What explains this share of the time that was lost limits the run.
EXPLAINS = 0.5
# Steps from which deepum learns, before what it predicts is of use.
LEARNING = 4


class Limit(StrEnum):
    """What the time is spent on."""

    COMPUTE = "compute"
    FAULTS = "faults"
    LINK = "link"
    IDLE = "idle"
    UNKNOWN = "unknown"


LIMITS = {
    Limit.COMPUTE: "the kernels: memory takes less than a tenth of the time",
    Limit.FAULTS: "page faults: kernels stand still until what they miss has come",
    Limit.LINK: "the link to the host: what has to move takes longer than kernels hide",
    Limit.IDLE: "neither link nor faults: the GPU waited for launches or for decisions",
    Limit.UNKNOWN: "not known",
}


@dataclass(frozen=True)
class Interval:
    """What a run, or a step of it, took: seconds, of which kernels computed `compute_s`; faults,
    their batches and the bytes that these moved; bytes that crossed the link to the GPU and to the
    host.
    """

    seconds: float
    compute_s: float
    faults: float
    fault_batches: float
    bytes_demand: float
    bytes_in: float
    bytes_out: float

    @property
    def lost_s(self) -> float:
        """Seconds in which no kernel computed."""
        return max(self.seconds - self.compute_s, 0.0)

    @property
    def lost(self) -> float:
        """The same as a share of the time."""
        return self.lost_s / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True)
class Costs:
    """Of a machine: GB/s (10^9) of its link each way, seconds of a fault batch and of a byte that
    comes by faults.
    """

    h2d_gbps: float
    d2h_gbps: float
    batch_s: float
    demand_s_per_byte: float

    def faults_s(self, interval: Interval) -> float:
        """Seconds that the driver serviced faults."""
        return (
            interval.fault_batches * self.batch_s + interval.bytes_demand * self.demand_s_per_byte
        )

    def link_s(self, interval: Interval) -> float:
        """Seconds that the busier direction of the link needs."""
        return max(interval.bytes_in / self.h2d_gbps, interval.bytes_out / self.d2h_gbps) / 1e9


@dataclass(frozen=True)
class Run:
    """What is known of a run beside its times. `fits`: nothing had to leave the GPU; None where
    nobody knows. `steps`: found. `refused`: allocations that had no room. `simulated`: time is
    virtual.
    """

    policy: str
    fits: bool | None
    steps: int
    simulated: bool
    launches_over_capacity: int = 0
    refused: int = 0
    refused_near: bool = False
    recomputes: bool = False


def limit(interval: Interval | None, costs: Costs | None) -> Limit:
    """What limits it: the kernels where less than `LITTLE` of the time was lost; else faults, and
    else the link, where they explain `EXPLAINS` of what was lost; else neither.
    """
    if interval is None:
        return Limit.UNKNOWN
    if interval.lost < LITTLE:
        return Limit.COMPUTE
    if costs is None:
        return Limit.UNKNOWN
    if costs.faults_s(interval) >= EXPLAINS * interval.lost_s:
        return Limit.FAULTS
    if costs.link_s(interval) >= EXPLAINS * interval.lost_s:
        return Limit.LINK
    return Limit.IDLE


def advice(run: Run, limited: Limit) -> list[str]:
    """What to try, best first; nothing where nothing is to be done."""
    found = []
    if run.refused or run.refused_near:
        found.append("--host-memory SIZE, for more than the host's part is now")
    if run.fits or limited is Limit.COMPUTE:
        return found
    if limited is Limit.UNKNOWN:
        return [*found, "deepum compare -- COMMAND, which measures what memory costs"]
    if run.policy == "on-demand" and limited is not Limit.IDLE:
        return [*found, "--policy correlation, the default: this run only watched"]
    if run.launches_over_capacity:
        found.append(
            "a smaller batch: single launches need more than the GPU has, and nothing helps there"
        )
    if limited is Limit.FAULTS:
        found.append(_of_faults(run))
    elif limited is Limit.LINK:
        if not run.recomputes:
            found.append(
                "--remat SIZE, where it is eager PyTorch: to compute again instead of moving"
            )
        found.append("a smaller batch, or activation checkpointing: less has to move")
        if run.policy != "planned" and run.steps >= LEARNING:
            found.append("--policy planned, which plans the moves of a step")
    else:
        found.append("the program's own waits and input: more memory would not make it faster")
    return found


def _of_faults(run: Run) -> str:
    if run.steps == 0:
        return (
            "a part of the program that repeats: no steps were found, and only what came before "
            "is predicted"
        )
    if run.steps < LEARNING:
        return "a longer run: the first steps are what deepum learns from; --profile FILE keeps it"
    return (
        "--record FILE, and deepum simulate on it: what other policies and cards would make of it"
    )
