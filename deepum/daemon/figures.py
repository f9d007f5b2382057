"""What the daemon tells of itself and of its sessions while they run: the one definition of the
members that the control channel's answers have (docs/watching.md), read by its clients as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

_Figures = TypeVar("_Figures", bound="DaemonFigures | SessionFigures")


@dataclass(frozen=True)
class DaemonFigures:
    """Of the daemon. Times are seconds, `began_at` since the epoch."""

    pid: int
    version: str
    package: str  # the folder of the installation that it serves
    socket: str
    began_at: float
    uptime_s: float
    idle_s: int  # after so long without a session it ends; 0: never
    sessions: int
    served: int  # sessions that began so far
    refused: int  # programs that were refused so far
    watchers: int  # clients of the control channel, this one included
    memory_bytes: int  # resident
    metrics_port: int | None  # where metrics are told, on the loopback interface


@dataclass(frozen=True)
class SessionFigures:
    """Of one session. Counts and bytes are totals since it began, unless they are said to be as of
    now. None: nobody knows.
    """

    session: int  # counts the daemon's sessions
    pid: int
    program: str  # its command line
    began_at: float  # seconds since the epoch
    at_s: float  # when these figures were taken, by the daemon's clock: for rates
    device: str  # `sim:MACHINE` or `cuda`
    policy: str  # as of now
    own_policy: str  # with which the session began
    prefetch_degree: int  # as of now, launches
    budget_bytes: int | None  # of each GPU, as of now; None: none was given
    launches: int
    steps: int  # iterations that were found
    step_launches: int  # of the present one; 0: nothing repeats
    capacity_bytes: int  # what managed memory may occupy, as of now
    resident_bytes: int  # as of now; a belief on a real GPU
    allocated_bytes: int  # as of now
    dead_bytes: int  # as of now, in PyTorch's blocks that nobody uses
    bytes_in: int  # moved to the GPU on the simulated one; asked for on a real one
    bytes_out: int  # likewise, to the host
    bytes_prefetched: int  # asked for by deepum
    bytes_evicted: int  # asked for by deepum
    bytes_discarded: int  # dropped without a copy, since nobody needs the content
    faults: int | None  # observed; on a real GPU while the driver is asked for them
    prefetch_accuracy: float | None  # of what was prefetched, the share that was used
    prefetch_coverage: float | None  # of what was used, the share that was prefetched
    prediction_accuracy: float | None  # of launches that were predicted, the share that came
    moves_given: int  # commands to the mover
    moves_untaken: int  # as of now, those that it has not seen
    moves_waiting: int  # as of now, those that it holds back until their turn comes
    holds: int  # launches that were held until their memory was there
    gpu_time_s: float | None  # virtual: the simulated GPU's clock
    compute_s: float | None  # virtual: of this, with kernels at work
    stall_s: float | None  # virtual: of this, waiting for memory
    warnings: int

    @property
    def virtual(self) -> bool:
        """The GPU is simulated: its rates are by its own clock."""
        return self.gpu_time_s is not None


def read(kind: type[_Figures], document: Mapping[str, Any]) -> _Figures:
    """Of an answer's object; members that are not known are left out. Raises ValueError where some
    are missing.
    """
    names = [field.name for field in fields(kind)]
    if missing := [name for name in names if name not in document]:
        raise ValueError(f"{kind.__name__}: {', '.join(missing)} missing")
    return kind(**{name: document[name] for name in names})
