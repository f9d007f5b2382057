"""How deepum runs beside the simulated program: in lock-step, free, or free with gates
(docs/simulate.md, Modes).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from deepum._core import lib

# Running free, ns from a program's event to the daemon's commands for it. The daemon sleeps for 100
# us between looks at the events (_NAP_SECONDS of deepum.daemon.session) and takes a few for each; a
# busy host adds to it. No GPU has answered yet.
DECISION_LAG_NS = {"kind": 50e3, "expected": 150e3, "unkind": 500e3}
HANDOVER_BYTES = 64 << 20  # DEEPUM_HANDOVER_BYTES


@dataclass(frozen=True)
class Mode:
    """`decision_lag_ns`, `handover_bytes` (each way, with the driver at a time): of a program that
    runs free, as `gates` are.
    """

    name: str
    runs_free: bool = True
    gates: bool = False
    decision_lag_ns: float = DECISION_LAG_NS["expected"]
    handover_bytes: int = HANDOVER_BYTES

    def __str__(self) -> str:
        return self.name

    def options(self) -> dict[str, float]:
        """As fields of `deepum_simulation_options`."""
        return {
            "mode": lib.DEEPUM_SIMULATION_FREE
            if self.runs_free
            else lib.DEEPUM_SIMULATION_LOCK_STEP,
            "gates": self.gates,
            "decision_lag_ns": self.decision_lag_ns,
            "handover_bytes": self.handover_bytes,
        }


LOCK_STEP = Mode("lock-step", runs_free=False)
FREE = Mode("free")
GATED = Mode("gated", gates=True)
MODES = {mode.name: mode for mode in (LOCK_STEP, FREE, GATED)}
DEFAULT = GATED  # what a run on a GPU does by default


def mode_of(name: str, costs: str | None) -> Mode:
    """The mode of that name, with the lag that goes with a driver's `costs`
    (deepum.simulate.driver), None being the expected ones.
    """
    return replace(MODES[name], decision_lag_ns=DECISION_LAG_NS[costs or "expected"])
