"""What can be simulated, by name: a named workload, a recorded run, or a folder in G10's form."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from deepum import workloads
from deepum.capture import cache
from deepum.capture.record import MULTIPROCESSORS
from deepum.core import EventLog
from deepum.errors import UsageError
from deepum.machines import named
from deepum.simulate import bound
from deepum.trace import Trace, g10, joined, work, work_path

DEFAULT_STEPS = 6
_G10_MACHINE = "a100-40gb-g10"
_MACHINE = "v100-16gb"
MACHINES = (_G10_MACHINE, _MACHINE)  # of workloads for which none is asked


@dataclass(frozen=True)
class Workload:
    """`machine`: the preset that it is simulated on if none is asked for. `kernels`: one iteration,
    where the whole workload is that; else what launches need is found in the trace.
    """

    name: str
    trace: Trace
    machine: str
    kernels: list[bound.Work] | None = None
    # Of kernels, by execution hash, where they are known.
    names: dict[int, str] = field(default_factory=dict)


def load(name: str, steps: int | None, synchronise: bool, machine: str | None = None) -> Workload:
    """Raises UsageError when there is no such workload or it cannot be read. `machine`: what a
    named workload is captured for.

    Of an iteration one more than `steps` are made: the last one of a run is not like the others
    (deepum.simulate.steps).
    """
    path = Path(name)
    if path.is_dir():
        if not g10.is_workload(path):
            raise UsageError(
                f"workload {name}: the folder has no kernels.csv and tensors.csv; name a "
                f"folder in G10's form or a recorded run"
            )
        try:
            iteration = g10.read(path)
        except OSError as error:
            raise UsageError(
                f"workload {name}: {error.strerror}; name a folder that can be read"
            ) from None
        except ValueError as error:
            raise UsageError(
                f"workload {name}: {error}; see docs/simulate.md for the form"
            ) from None
        made = g10.trace(iteration, (steps or DEFAULT_STEPS) + 1, synchronise)
        return Workload(
            path.resolve().name,
            made,
            _G10_MACHINE,
            bound.of_iteration(iteration),
            g10.names(iteration),
        )
    if not path.exists() and name.partition(":")[0] in workloads.WORKLOADS:
        request = workloads.parse(name)
        return Workload(
            str(request),
            cache.captured(
                request, (steps or request.named.steps) + 1, synchronise, _multiprocessors(machine)
            ),
            _MACHINE,
        )
    if steps is not None or synchronise:
        raise UsageError(
            f"workload {name}: is no single iteration; leave out --steps and --synchronise, "
            f"or record another run"
        )
    return Workload(path.name, recorded(path), _MACHINE)


def _multiprocessors(machine: str | None) -> int:
    try:
        return int(named(machine or _MACHINE).native().multiprocessors)
    except ValueError:
        return MULTIPROCESSORS


def recorded(path: Path) -> Trace:
    """The trace of a recorded run, with its work if that is beside it. Raises UsageError."""
    try:
        log = EventLog.read(path)
        raw = work.of_file(work_path(path).read_bytes()) if work_path(path).exists() else b""
        return joined.join(path.name, log, raw)
    except OSError as error:
        raise UsageError(
            f"workload {path}: {error.strerror}; name a file written by `deepum run "
            f"--record`, a folder, or one of `deepum workloads`"
        ) from None
    except ValueError as error:
        raise UsageError(f"workload {path}: {error}; record it anew with this version") from None
