"""`deepum compare`: a program run under one policy after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deepum.configuration.setting import Value
from deepum.errors import UsageError
from deepum.launcher.execute import run
from deepum.launcher.launch import Plan, plan
from deepum.statistics.outcome import outcome

# More than any program allocates: nothing has to move.
_UNLIMITED_BYTES = 1 << 40
# By name: what the run's settings are beside those that all have.
POLICIES: dict[str, dict[str, Value]] = {
    "on-demand": {"policy": "on-demand", "remat": None},
    "deepum": {"policy": "correlation"},
    "planned": {"policy": "planned"},
    "unlimited": {"policy": "on-demand", "gpu_memory": str(_UNLIMITED_BYTES), "remat": None},
}
DEFAULT = ("on-demand", "deepum", "unlimited")
# Settings that are none of a comparison's: a run of it starts without what another has learned.
OWN = ("policy", "stats", "record", "profile")


@dataclass
class Runs:
    """Those that have ended well, by name with their statistics; `failed`: the one that did not,
    and its wait status, None where somebody asked to end.
    """

    ended: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    failed: tuple[str, int | None] | None = None


def policies_of(text: str | None) -> tuple[str, ...] | None:
    """The names in `a,b`. Raises UsageError."""
    if text is None:
        return None
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if name not in POLICIES:
            raise UsageError(f"policy '{name}': is unknown; choose of {', '.join(POLICIES)}")
    if not names:
        raise UsageError(f"--policies: names none; choose of {', '.join(POLICIES)}")
    return names


def plans(
    names: Sequence[str] | None,
    command: Sequence[str],
    values: Mapping[str, Value],
    environment: Mapping[str, str],
) -> list[tuple[str, Plan]]:
    """A run for each policy; nothing has been started. Raises DeepumError for what cannot run."""
    shared = {**values, **dict.fromkeys(OWN)}
    made = []
    for name in names or DEFAULT:
        own = POLICIES[name]
        if own["policy"] != "planned":
            own = {**own, "plan": None}
        planned = plan(command, {**shared, **own}, environment)
        if planned.device.is_cpu:
            raise UsageError("device cpu: nothing is moved there; compare on a GPU or --device sim")
        if name == "unlimited":
            if not planned.device.simulated:
                if names is not None:
                    raise UsageError(
                        "policy 'unlimited': is for a simulated GPU; add --device sim, or leave it "
                        "out"
                    )
                continue
            planned.remarks.clear()
        made.append((name, planned))
    return made


def run_all(planned: Sequence[tuple[str, Plan]], say: Callable[[str], None]) -> Runs:
    """One after another, until one fails or somebody asks to end. `say` hears of each."""
    runs = Runs()
    for number, (name, one) in enumerate(planned, start=1):
        say(f"[{number}/{len(planned)}] {name}")
        try:
            ran = run(one, remarks=number == 1 and one.values["log"] != 0)
        except KeyboardInterrupt:
            runs.failed = (name, None)
            return runs
        if ran.status != 0 or ran.end_requested:
            runs.failed = (name, ran.status or None)
            return runs
        say(f"[{number}/{len(planned)}] {name}: {_took(ran.report)}")
        runs.ended.append((name, ran.report))
    return runs


def _took(report: Mapping[str, Any]) -> str:
    if not report["processes"]:
        return "no GPU used"
    result = outcome(report)
    return f"{result.seconds:.3f} s, {result.clock} time" if result.seconds is not None else "ended"
