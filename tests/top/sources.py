"""Daemons that tests make up, for `top` to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deepum.daemon.figures import DaemonFigures, SessionFigures
from deepum.daemon.steering import Changes
from deepum.errors import DeepumError

NOW = 1_800_000_000.0  # seconds since the epoch
GIB = 1 << 30
DAEMON = DaemonFigures(
    pid=4711,
    version="1.2.3",
    package="/opt/deepum",
    socket="/run/user/1000/deepum/daemon-0.sock",
    began_at=NOW - 600,
    uptime_s=600,
    idle_s=60,
    sessions=2,
    served=3,
    refused=1,
    watchers=1,
    memory_bytes=40 << 20,
    metrics_port=None,
)
SIMULATED = SessionFigures(
    session=1,
    pid=101,
    program="/usr/bin/python3 /home/me/train_gpt2.py --steps 300",
    began_at=NOW - 300,
    at_s=1000.0,
    device="sim:v100-16gb",
    policy="correlation",
    own_policy="correlation",
    prefetch_degree=8192,
    budget_bytes=None,
    launches=120_000,
    steps=40,
    step_launches=3000,
    capacity_bytes=16 * GIB,
    resident_bytes=15 * GIB,
    allocated_bytes=26 * GIB,
    dead_bytes=2 * GIB,
    bytes_in=400 * GIB,
    bytes_out=380 * GIB,
    bytes_prefetched=390 * GIB,
    bytes_evicted=370 * GIB,
    bytes_discarded=90 * GIB,
    faults=107_000,
    prefetch_accuracy=0.97,
    prefetch_coverage=0.99,
    prediction_accuracy=0.999,
    moves_given=51_234,
    moves_untaken=3,
    moves_waiting=17,
    holds=2_048,
    gpu_time_s=80.0,
    compute_s=64.0,
    stall_s=12.0,
    warnings=0,
)
REAL = replace(
    SIMULATED,
    session=2,
    pid=102,
    program="./sweep kernels.cubin 8 64 4",
    began_at=NOW - 4000,
    device="cuda",
    policy="on-demand",
    prefetch_degree=100,
    budget_bytes=8 * GIB,
    capacity_bytes=8 * GIB,
    resident_bytes=1 * GIB,
    allocated_bytes=1 * GIB,
    dead_bytes=0,
    steps=0,
    step_launches=0,
    faults=None,
    prefetch_accuracy=None,
    prefetch_coverage=None,
    gpu_time_s=None,
    compute_s=None,
    stall_s=None,
)


class MadeUp:
    """Sessions that go on: each look is a second later, of which the simulated GPU's clock makes
    two.
    """

    def __init__(self, sessions: Sequence[SessionFigures] = (SIMULATED, REAL)) -> None:
        self.sessions = list(sessions)
        self.done: list[object] = []
        self.refuses: str | None = None
        self.running = True

    def look(self) -> tuple[DaemonFigures | None, Sequence[SessionFigures]]:
        current = list(self.sessions)
        self.sessions = [later(each) for each in current]
        if not self.running:
            return None, []
        return replace(DAEMON, sessions=len(current)), current

    def set(self, session: int, changes: Changes) -> None:
        self._do((session, changes))

    def end(self, session: int, detach: bool) -> None:
        self._do((session, "detach" if detach else "end"))

    def _do(self, what: object) -> None:
        if self.refuses is not None:
            raise DeepumError(self.refuses)
        self.done.append(what)


def later(session: SessionFigures) -> SessionFigures:
    """A second later."""
    virtual = None if session.gpu_time_s is None else session.gpu_time_s + 2.0
    return replace(
        session,
        at_s=session.at_s + 1,
        gpu_time_s=virtual,
        steps=session.steps + (1 if session.steps else 0),
        bytes_in=session.bytes_in + 9 * GIB,
        bytes_out=session.bytes_out + 5 * GIB + session.bytes_out % 7 * GIB // 4,
    )
