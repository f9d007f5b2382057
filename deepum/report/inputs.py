"""What `deepum report` is given, told apart by its content: simulations, statistics, and workloads
and plans, to be replayed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deepum.errors import UsageError
from deepum.report.plans import PlanReplay, is_plan, replay_plan
from deepum.simulate.workload import Workload, load
from deepum.statistics.keys import ADDED_KEYS, KEYS

_WANTED = (
    "name what `deepum simulate --json`, `deepum plan --output`, `deepum run --stats` or "
    "`--record` wrote, or a workload"
)
_LOG = b"DEEPUMEV"


@dataclass
class Inputs:
    """`simulations`, `statistics` and `plans`: with the name of the file that they are from."""

    simulations: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    statistics: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    workloads: list[Workload] = field(default_factory=list)
    plans: list[tuple[str, PlanReplay]] = field(default_factory=list)


def read(
    names: Sequence[str],
    steps: int | None = None,
    synchronise: bool = False,
    machine: str | None = None,
) -> Inputs:
    """All of them, in order. `steps`, `synchronise`: of workloads that are one iteration;
    `machine`: what named ones are captured for.

    Raises UsageError.
    """
    found = Inputs()
    for name in names:
        path = Path(name)
        try:
            begins = _first_bytes(path) if path.is_file() else b""
            if is_plan(begins):
                found.plans.append((path.name, replay_plan(path.read_bytes())))
                continue
            is_json = path.is_file() and begins != _LOG
            document = json.loads(path.read_bytes()) if is_json else None
        except OSError as error:
            raise UsageError(f"{name}: {error.strerror}; {_WANTED}") from None
        except (ValueError, RecursionError) as error:
            if is_plan(begins):
                raise UsageError(
                    f"plan {name}: {error}; make it anew with `deepum plan --output`"
                ) from None
            raise UsageError(f"{name}: is neither JSON nor an event log; {_WANTED}") from None
        if document is None:
            single = not path.is_file()  # a recorded run is as long as it was
            found.workloads.append(
                load(name, steps if single else None, synchronise and single, machine)
            )
        elif isinstance(document, dict) and set(KEYS) - ADDED_KEYS <= set(document):
            found.statistics.append((path.name, document))
        elif isinstance(document, dict) and (
            "policies" in document or isinstance(document.get("simulations"), list)
        ):
            try:
                found.simulations += [
                    (path.name, _simulation(one)) for one in document.get("simulations", [document])
                ]
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
                raise UsageError(
                    f"{name}: the simulation's figures make no sense: {error}; simulate anew "
                    f"with this version"
                ) from None
        elif isinstance(document, dict) and {"processes", "kernels"} <= set(document):
            lacking = ", ".join(sorted(set(KEYS) - ADDED_KEYS - set(document)))
            raise UsageError(
                f"{name}: the statistics of another version, without {lacking}; write them "
                f"anew with `deepum run --stats`"
            )
        else:
            raise UsageError(
                f"{name}: is JSON, but neither of a simulation nor of a run; {_WANTED}"
            )
    return found


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(_LOG))


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def _ratio(value: Any) -> float | None:
    """None: over a time that is not there."""
    return None if value is None else _number(value)


def _simulation(document: Any) -> dict[str, Any]:
    """What of a simulation's figures is drawn, all of it as it should be. Raises ValueError,
    KeyError, TypeError or AttributeError.
    """
    if document["version"] != 1:
        raise ValueError(f"version {document['version']}")
    policies: dict[str, dict[str, Any]] = {}
    for name, one in document["policies"].items():
        if "does_not_fit" in one:
            policies[str(name)] = {"does_not_fit": str(one["does_not_fit"])}
            continue
        policies[str(name)] = {
            "step_ms": _number(one["step_ms"]),
            "steps_ms": [_number(ms) for ms in one["steps_ms"]],
            "steps_faults": [_number(count) for count in one.get("steps_faults", [])],
            "of_unlimited": _ratio(one["of_unlimited"]),
            "speed_up_over_on_demand": _ratio(one["speed_up_over_on_demand"]),
            "of_bound": _ratio(one["of_bound"]),
            "of_kept_bound": _ratio(one.get("of_kept_bound")),
            "a_step": {str(counter): _number(count) for counter, count in one["a_step"].items()},
        }
    if "does_not_fit" in policies.get("on-demand", {"does_not_fit": ""}):
        raise ValueError("on-demand paging is not there, or did not fit in the host's memory")
    if policies["on-demand"]["step_ms"] <= 0:
        raise ValueError("on-demand takes no time")
    bounds = {key: _ratio(document[key]) for key in ("bound_ms", "moving_bound_ms")}
    # Before there was a second bound, simulations told of the first only.
    bounds |= {key: _ratio(document.get(key)) for key in ("kept_bound_ms", "kept_moving_bound_ms")}
    return {
        "workload": str(document["workload"]),
        "machine": str(document["machine"]),
        "memory_bytes": _number(document["memory_bytes"]),
        "policies": policies,
    } | bounds
