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
# Times as fast as on demand between which a run is as fast as that.
ALIKE = (0.98, 1.02)
# Of what was needed, what has to have been prefetched.
MOST, HALF = 0.9, 0.5
# Steps from which deepum learns, before what it predicts is of use.
LEARNING = 4


class Limit(StrEnum):
    """What the time is spent on."""

    COMPUTE = "compute"
    FAULTS = "faults"
    LINK = "link"
    IDLE = "idle"
    UNKNOWN = "unknown"


NAMES = {
    Limit.COMPUTE: "the kernels",
    Limit.FAULTS: "page faults",
    Limit.LINK: "the link to the host",
    Limit.IDLE: "neither link nor faults",
    Limit.UNKNOWN: "not known",
}
EXPLAINED = {
    Limit.COMPUTE: "memory takes less than a tenth of the time",
    Limit.FAULTS: "kernels stand still until what they miss has come",
    Limit.LINK: "what has to move takes longer than kernels hide",
    Limit.IDLE: "the GPU waited for launches or for decisions",
    Limit.UNKNOWN: "nobody tells what the GPU did",
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
    nobody knows. `steps`: found. `refused`: allocations that had no room; `nearly_full`: there was
    hardly any left. `pytorch`: PyTorch's blocks died in it, and their content was dropped.
    `recomputes`: under --remat. `coverage`: of what was needed, what had been prefetched.
    `simulated`: time is virtual. `failed`: how the program ended, where not well.
    """

    policy: str
    fits: bool | None
    steps: int
    simulated: bool
    launches_over_capacity: int = 0
    refused: int = 0
    nearly_full: bool = False
    pytorch: bool = False
    recomputes: bool = False
    coverage: float | None = None
    failed: str | None = None


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


@dataclass(frozen=True)
class Advice:
    """What to try, and why."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


_ANOTHER_BATCH = Advice(
    "another batch size",
    "smaller where activations do not fit, or activation checkpointing; larger where weights do "
    "not",
)


def advice(run: Run, limited: Limit) -> list[Advice]:
    """What to try, best first; nothing where nothing is to be done."""
    found = []
    if run.refused or run.nearly_full:
        found.append(Advice("--host-memory SIZE", "more of the host's memory than it takes now"))
    if run.fits or limited is Limit.COMPUTE:
        return found
    if limited is Limit.UNKNOWN:
        return [*found, Advice("deepum compare -- COMMAND", "it measures what memory costs")]
    if run.policy == "on-demand" and limited is not Limit.IDLE:
        return [*found, Advice("--policy correlation", "the default; this run only watched")]
    if run.launches_over_capacity:
        why = "single launches need more than the GPU has, where no policy helps"
        found.append(Advice("a smaller batch", why))
    if limited is Limit.FAULTS:
        found.append(_of_faults(run))
    elif limited is Limit.LINK:
        found += _of_the_link(run)
    else:
        why = "the GPU waited for the program rather than for memory"
        found.append(Advice("the program's own waits and input", why))
    return found


def _of_faults(run: Run) -> Advice:
    if run.steps == 0:
        return Advice(
            "a look at docs/programs.md",
            "no steps were found, and what has not come before cannot be predicted",
        )
    if run.steps < LEARNING:
        return Advice("a longer run, with --profile FILE", "the first steps are learned from")
    return Advice(
        "--record FILE, then deepum simulate FILE", "it compares other policies and cards"
    )


def _of_the_link(run: Run) -> list[Advice]:
    """Statistics do not tell of what the memory is: activations that are computed in each step, or
    weights and the optimizer's state, which nothing brings back. `--remat auto` finds out.
    """
    found = []
    if run.pytorch and not run.recomputes:
        why = "some 50 steps find out whether computing activations again is faster than moving"
        found.append(Advice("--remat auto", why))
    if not run.launches_over_capacity:  # else a smaller one was named
        found.append(_ANOTHER_BATCH)
    if run.policy != "planned" and run.steps >= LEARNING:
        found.append(Advice("--policy planned", "the moves of a step are planned, and tried"))
    return found


def working(run: Run, gain: float | None) -> tuple[str, str]:
    """Whether deepum does what it is for: a word or two, and why. `gain`: times as fast as on
    demand, where that is known.
    """
    if run.failed is not None:
        return "It failed", f"the program {run.failed}"
    if run.fits:
        return "Nothing to do", "all of the program's memory fits in the GPU's"
    if run.policy == "on-demand":
        return "It only watched", "with --policy on-demand nothing is prefetched"
    if gain is not None and gain < ALIKE[0]:
        return "No", "it is slower than on-demand paging"
    if gain is not None and gain <= ALIKE[1]:
        return "No gain", "it is as fast as on-demand paging"
    if run.coverage is None:
        return (
            ("Yes", "it is faster than on-demand paging")
            if gain
            else (
                "Not known",
                "a real driver does not tell what was there in time"
                if not run.simulated
                else "nothing was moved to the GPU",
            )
        )
    had = f"{run.coverage:.0%} of what kernels needed from the host was prefetched"
    if run.coverage >= MOST:
        return "Yes", had
    return ("In part" if run.coverage >= HALF else "Hardly"), had
