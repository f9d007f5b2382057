"""Makes a session's figures of what its core, its ring and the simulated GPU count."""

from __future__ import annotations

import time
from typing import NamedTuple

from deepum.core import CoreStatistics, Ring
from deepum.daemon.figures import SessionFigures
from deepum.daemon.program import ServedProgram
from deepum.daemon.steering import LiveSettings

_MOST_WAITING = 1 << 32  # moves: more is no count of a sound mover's


class MoverState(NamedTuple):
    """Commands that the mover has not seen, and those that it holds back until their turn comes."""

    untaken: int
    waiting: int

    @classmethod
    def of(cls, ring: Ring) -> MoverState:
        """What the program says of it is not trusted to be small."""
        return cls(ring.commands_untaken, min(ring.moves_waiting, _MOST_WAITING))


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def tell(
    number: int,
    program: ServedProgram,
    core: CoreStatistics,
    mover: MoverState,
    settings: LiveSettings,
    warnings: int,
) -> SessionFigures:
    """mover, core: taken in the session's thread."""
    simulated = program.simulated()
    used = simulated.get("bytes_prefetched_used", 0)
    known = bool(simulated or core.faults_observed)  # a real GPU's driver tells of them for a while
    return SessionFigures(
        session=number,
        pid=program.pid,
        program=program.command_line,
        began_at=program.began_at,
        at_s=time.monotonic(),
        device=program.device,
        policy=settings.policy,
        own_policy=settings.own_policy,
        prefetch_degree=settings.prefetch_degree,
        budget_bytes=settings.budget_bytes,
        launches=core.launches,
        steps=core.iterations,
        step_launches=core.iteration_launches,
        capacity_bytes=core.capacity_bytes,
        resident_bytes=int(simulated.get("resident_bytes", core.resident_bytes)),
        allocated_bytes=core.allocated_bytes,
        dead_bytes=core.dead_bytes,
        bytes_in=int(
            simulated.get("bytes_h2d", core.bytes_prefetched + core.bytes_prefetched_again)
        ),
        bytes_out=int(simulated.get("bytes_d2h", core.bytes_evicted + core.bytes_copied_out)),
        bytes_prefetched=core.bytes_prefetched + core.bytes_prefetched_again,
        bytes_evicted=core.bytes_evicted,
        bytes_discarded=core.bytes_invalidated,
        faults=int(simulated.get("faults", core.faults_observed)) if known else None,
        prefetch_accuracy=_share(used, simulated.get("bytes_prefetched", 0)),
        prefetch_coverage=_share(used, used + simulated.get("bytes_demand", 0)),
        prediction_accuracy=_share(core.predictions_right, core.predictions),
        moves_given=core.commands,
        moves_untaken=mover.untaken,
        moves_waiting=mover.waiting,
        holds=core.holds,
        gpu_time_s=simulated.get("gpu_time_s"),
        compute_s=simulated.get("compute_s"),
        stall_s=simulated.get("stall_s"),
        warnings=warnings,
    )
