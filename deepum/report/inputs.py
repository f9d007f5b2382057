"""What `deepum report` is given, told apart by its content: simulations, statistics, and workloads to be replayed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deepum.errors import UsageError
from deepum.simulate.workload import Workload, load

_WANTED = "name what `deepum simulate --json`, `deepum run --stats` or `--record` wrote, or a workload"
_LOG = b"DEEPUMEV"


@dataclass
class Inputs:
    """`simulations` and `statistics`: with the name of the file that they are from."""

    simulations: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    statistics: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    workloads: list[Workload] = field(default_factory=list)


def read(names: Sequence[str], steps: int | None = None, synchronise: bool = False) -> Inputs:
    """All of them, in order. `steps`, `synchronise`: of workloads that are one iteration. Raises UsageError."""
    found = Inputs()
    for name in names:
        path = Path(name)
        try:
            is_json = path.is_file() and not _begins_as_log(path)
            told = json.loads(path.read_bytes()) if is_json else None
        except OSError as error:
            raise UsageError(f"{name}: {error.strerror}; {_WANTED}") from None
        except ValueError:
            raise UsageError(f"{name}: is neither JSON nor an event log; {_WANTED}") from None
        if told is None:
            single = path.is_dir()
            found.workloads.append(load(name, steps if single else None, synchronise and single))
        elif _is_simulation(told):
            found.simulations.append((path.name, told))
        elif isinstance(told, dict) and "processes" in told and "gpu_time_s" in told:
            found.statistics.append((path.name, told))
        else:
            raise UsageError(f"{name}: is JSON, but neither of a simulation nor of a run; {_WANTED}")
    return found


def _begins_as_log(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_LOG)) == _LOG


def _is_simulation(told: Any) -> bool:
    """As `Comparison.as_json` makes it."""
    try:
        policies = told["policies"]
        figures = [
            (one["speed_up_over_on_demand"], one["of_unlimited"], *one["steps_ms"], *one["a_step"].values()) for one in policies.values()
        ]
        bound = told["bound_ms"]
        known = policies["on-demand"]["step_ms"] > 0 and isinstance(told["workload"], str) and isinstance(told["machine"], str)
    except (KeyError, TypeError, AttributeError):
        return False
    numbers = [number for row in figures for number in row] + [told["memory_bytes"], 0 if bound is None else bound]
    return known and all(isinstance(number, (int, float)) for number in numbers)
