"""Runs a trace on a machine: the native replay as a Python object (native/simulate/simulate.h)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from deepum._core import ffi, lib
from deepum.core import Core, CoreSettings, CoreStatistics
from deepum.machines import named
from deepum.simulate.mode import DEFAULT, Mode
from deepum.trace import Trace

WATCHED = 64  # launches
_ALL = 2**64 - 1
_OBSERVE = {  # (faults, times)
    (False, False): lib.DEEPUM_SIMULATION_OBSERVE_NOTHING,
    (True, False): lib.DEEPUM_SIMULATION_OBSERVE_FAULTS,
    (False, True): lib.DEEPUM_SIMULATION_OBSERVE_TIMES,
}
Watch = Callable[[Core], Callable[[], None]]


class Program(Protocol):
    """A program that goes by how long its steps take. `chunks`: events and work, one after the
    other, as long as there are any; `ended`: when the GPU was through with a step, from 0, in ns;
    NaN: it is not, yet.
    """

    def chunks(self, ended: Callable[[int], float]) -> Iterator[tuple[bytes, bytes]]:
        """All of them."""


@dataclass(frozen=True)
class Mark:
    """A point in the run. `kind`: "step" (the GPU's time at the end of a step's last launch) or
    "synchronise" (the host's).
    """

    kind: str
    launches: int
    ns: float
    counters: dict[str, float]


@dataclass(frozen=True)
class Launch:
    """Times of one launch, memset or copy inside the device, ns: the ones before it are done, it is
    no longer held, it has ended; and how long it takes with all of its memory there.
    """

    sequence: int
    reached: float
    ready: float
    end: float
    kernel_ns: float


@dataclass(frozen=True)
class Outcome:
    """What a replay comes to. `ns`: the host's clock at the end of all work; counters as
    `deepum_model_counters`.
    """

    ns: float
    marks: list[Mark]
    counters: dict[str, float]
    core: CoreStatistics
    commands: bytes  # as `deepum_command` records, if they were kept
    launches: list[Launch]
    # Of ACTIVITY, by start; empty unless they were kept.
    activities: npt.NDArray[np.void] = field(compare=False)


# `deepum_activity` (native/um_model/activity.h): ns of virtual time, bytes.
ACTIVITY = np.dtype(
    [
        ("kind", "<u4"),
        ("device", "<i4"),
        ("count", "<u4"),
        ("command", "<u4"),
        ("tag", "<u8"),
        ("bytes", "<u8"),
        ("resident_bytes", "<u8"),
        ("start_ns", "<f8"),
        ("end_ns", "<f8"),
        ("stall_ns", "<f8"),
    ]
)
assert ACTIVITY.itemsize == ffi.sizeof("deepum_activity")
assert ACTIVITY.names == tuple(name for name, _ in ffi.typeof("deepum_activity").fields)

_COUNTERS = [name for name, _ in ffi.typeof("deepum_model_counters").fields]
_KINDS = {lib.DEEPUM_SIMULATION_STEP: "step", lib.DEEPUM_SIMULATION_SYNCHRONISE: "synchronise"}


def _counters(native: Any) -> dict[str, float]:
    return {name: getattr(native, name) for name in _COUNTERS}


def machine(name: str, **figures: float) -> Any:
    """The native figures of a machine, some changed. Raises ValueError for an unknown name,
    UsageError for a file that cannot be used.
    """
    native = named(name).native()
    for figure, value in figures.items():
        setattr(native, figure, value)
    return native


def replay(
    trace: Trace | Program,
    on: Any,
    settings: CoreSettings,
    memory_bytes: int = 0,
    marker_interval: int = 16,
    keep_commands: bool = False,
    keep_launches: bool = False,
    observe_faults: bool = False,
    observe_times: bool = False,
    keep_activities: bool = False,
    without_prefetch: bool = False,
    mode: Mode = DEFAULT,
    capacity_error: int = 0,
    without_free_memory: bool = False,
    profile: bytes = b"",
    watch: Watch | None = None,
) -> Outcome:
    """Runs it from the start, without the GIL. `trace`: or a program that makes its own as it goes.
    `on`: as `machine` gives it. `memory_bytes`: of the
    card, 0: the machine's.

    `observe_faults`: the core is told of faults while it wants to be, and of times of launches;
    `observe_times`: of these alone. `watch`: gets the core before the first event, and makes what
    is called after every `WATCHED` launches. `without_prefetch`: as under `prefetch=0`. `mode`:
    what launches wait for, and how long decisions take. `capacity_error`: bytes by which the
    capacity told at the start is too high. `without_free_memory`: the core is
    never told what is free. `profile`: what an earlier run learned. Raises ValueError when the
    trace, the settings or the profile cannot be used.
    """
    options = ffi.new(
        "deepum_simulation_options *",
        {
            "memory_bytes": memory_bytes or on.memory_bytes,
            "capacity_error": capacity_error,
            "devices": 1,
            "density_prefetcher": 1,
            **mode.options(),
            "marker_interval": marker_interval,
            "observe": _OBSERVE[observe_faults, observe_times and not observe_faults],
            "without_prefetch": without_prefetch,
            "without_free_memory": without_free_memory,
            "keep_commands": keep_commands,
            "keep_launches": keep_launches,
            "keep_activities": keep_activities,
        },
    )
    made = lib.deepum_simulation_create(on, options, settings.native())
    if made == ffi.NULL:
        raise ValueError("the machine or the settings are out of range")
    handle = ffi.gc(made, lib.deepum_simulation_destroy)
    if (
        profile
        and lib.deepum_simulation_load_tables(
            handle, ffi.from_buffer("uint8_t[]", profile), len(profile)
        )
        != 0
    ):
        raise ValueError("the profile is damaged, or another version's")
    _run(handle, trace, settings, watch)
    if lib.deepum_simulation_finish(handle) != 0:
        raise ValueError("the trace is damaged, or memory ran out")
    return Outcome(
        float(lib.deepum_simulation_now(handle)),
        _marks(handle),
        _read(handle, "deepum_model_counters", lib.deepum_simulation_counters, _counters),
        _read(
            handle,
            "deepum_core_statistics",
            lib.deepum_simulation_core_statistics,
            lambda native: CoreStatistics(
                **{field.name: int(getattr(native, field.name)) for field in fields(CoreStatistics)}
            ),
        ),
        _commands(handle),
        _launches(handle),
        _activities(handle),
    )


def _run(handle: Any, trace: Trace | Program, settings: CoreSettings, watch: Watch | None) -> None:
    look = watch(Core.of(lib.deepum_simulation_core(handle), settings)) if watch else None
    if isinstance(trace, Trace):
        _run_chunk(handle, trace.events, trace.work, look)
        return
    for events, work in trace.chunks(
        lambda step: float(lib.deepum_simulation_step_end(handle, step))
    ):
        _run_chunk(handle, events, work, look)


def _run_chunk(
    handle: Any, event_records: bytes, work_records: bytes, look: Callable[[], None] | None
) -> None:
    events, work = (
        ffi.from_buffer("uint8_t[]", event_records),
        ffi.from_buffer("uint8_t[]", work_records),
    )
    done, worked = ffi.new("size_t *"), ffi.new("size_t *")
    at = work_at = 0
    while at < len(event_records):
        failed = lib.deepum_simulation_run_launches(
            handle,
            events + at,
            len(event_records) - at,
            work + work_at,
            len(work_records) - work_at,
            WATCHED if look is not None else _ALL,
            done,
            worked,
        )
        if failed:
            raise ValueError("the trace is damaged, or memory ran out")
        at, work_at = at + int(done[0]), work_at + int(worked[0])
        if look is not None:
            look()


def _read(handle: Any, ctype: str, get: Any, convert: Any) -> Any:
    native = ffi.new(f"{ctype} *")
    get(handle, native)
    return convert(native)


def _marks(handle: Any) -> list[Mark]:
    count = int(lib.deepum_simulation_marks(handle, ffi.NULL, 0))
    native = ffi.new("deepum_simulation_mark[]", max(count, 1))
    lib.deepum_simulation_marks(handle, native, count)
    return [
        Mark(_KINDS[m.kind], int(m.launches), float(m.time_ns), _counters(m.counters))
        for m in (native[i] for i in range(count))
    ]


def _launches(handle: Any) -> list[Launch]:
    count = int(lib.deepum_simulation_launches(handle, ffi.NULL, 0))
    native = ffi.new("deepum_simulation_launch[]", max(count, 1))
    lib.deepum_simulation_launches(handle, native, count)
    return [
        Launch(int(m.sequence), m.reached_ns, m.ready_ns, m.end_ns, m.kernel_ns)
        for m in (native[i] for i in range(count))
    ]


def _activities(handle: Any) -> npt.NDArray[np.void]:
    taken = []
    batch = np.empty(1 << 14, ACTIVITY)
    native = ffi.from_buffer("deepum_activity[]", batch)
    while count := int(lib.deepum_simulation_take_activities(handle, native, len(batch))):
        taken.append(batch[:count].copy())
    found = np.concatenate(taken) if taken else np.empty(0, ACTIVITY)
    return found[np.argsort(found["start_ns"], kind="stable")]


def _commands(handle: Any) -> bytes:
    taken = []
    batch = ffi.new("deepum_command[]", 4096)
    while count := int(lib.deepum_simulation_take_commands(handle, batch, 4096)):
        taken.append(bytes(ffi.buffer(batch, count * ffi.sizeof("deepum_command"))))
    return b"".join(taken)
