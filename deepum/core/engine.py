"""The decision core as a Python object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from deepum._core import ffi, lib
from deepum.core.decoding import commands
from deepum.core.plan import LaunchTime, PlannedMove, Recording
from deepum.core.records import Buffer, Command
from deepum.core.settings import CoreSettings

_MOST_TIMES = 1 << 16  # of one call
_UNKNOWN = 2**64 - 1


@dataclass(frozen=True)
class CoreStatistics:
    """Counters of a core since its start; names and units are those of `deepum_core_statistics` in
    native/core/core.h.
    """

    events: int
    launches: int
    execution_ids: int
    predictions: int
    predictions_right: int
    chain_restarts: int
    commands: int
    bytes_prefetched: int
    bytes_prefetched_again: int
    bytes_evicted: int
    bytes_invalidated: int
    bytes_copied_out: int
    bytes_dropped: int
    window_mistakes: int
    window_stalls: int
    allocated_bytes: int
    peak_allocated_bytes: int
    resident_bytes: int
    peak_resident_bytes: int
    table_bytes: int
    malformed_events: int
    events_lost: int
    discards_undone: int
    dead_bytes: int
    block_mismatches: int
    holds: int
    launches_over_capacity: int
    budget_overshoot_bytes: int
    capacity_bytes: int
    capacity_withdrawn_bytes: int
    driver_evictions_seen: int
    remote_bytes: int
    peak_remote_bytes: int
    faults_observed: int
    faults_observed_writing: int
    planned_launches: int
    iterations: int
    iteration_launches: int
    operations: int


class Core:
    """One session's decision core. Not for use by several threads at once; `process` works without
    the GIL.
    """

    RESIDENT: int = lib.DEEPUM_BLOCK_RESIDENT
    POPULATED: int = lib.DEEPUM_BLOCK_POPULATED
    FAULTED: int = lib.DEEPUM_BLOCK_FAULTED
    WRITTEN: int = lib.DEEPUM_BLOCK_WRITTEN

    def __init__(self, settings: CoreSettings | None = None) -> None:
        """Raises ValueError when a setting or a parameter is out of range (see
        docs/core-reference.md), or memory is exhausted.
        """
        self.settings = settings if settings is not None else CoreSettings.default()
        handle = lib.deepum_core_create(self.settings.native())
        if handle == ffi.NULL:
            raise ValueError(f"the decision core refuses its settings: {self.settings}")
        self._handle: Any = ffi.gc(handle, lib.deepum_core_destroy)

    @classmethod
    def of(cls, handle: Any, settings: CoreSettings) -> Core:
        """The core that somebody else made with these settings, and ends: not to be used then."""
        core = cls.__new__(cls)
        core.settings, core._handle = settings, handle
        return core

    @property
    def handle(self) -> Any:
        """The native `deepum_core *`, for `Ring.turn`."""
        return self._handle

    def process(self, records: Buffer) -> int:
        """Takes whole event records; returns the sequence of the last one, 0 if there was none."""
        view = memoryview(records).cast("B")
        if not view.nbytes:
            return 0
        return int(
            lib.deepum_core_process(self._handle, ffi.from_buffer("uint8_t[]", view), view.nbytes)
        )

    def take_command_bytes(self) -> bytes:
        """All commands decided so far and not yet taken, as `deepum_command` records."""
        taken = []
        batch = ffi.new("deepum_command[]", 256)
        while count := int(lib.deepum_core_take_commands(self._handle, batch, 256)):
            taken.append(bytes(ffi.buffer(batch, count * ffi.sizeof("deepum_command"))))
        return b"".join(taken)

    def take_commands(self) -> list[Command]:
        """All commands decided so far and not yet taken."""
        return list(commands(self.take_command_bytes()))

    def block_state(self, slot: int, block: int) -> int:
        """What is believed of a UM block: `RESIDENT`, `POPULATED`, `FAULTED` and `WRITTEN` bits; 0
        where there is no such block.
        """
        return int(lib.deepum_core_block_state(self._handle, slot, block))

    def name_block(self, slot: int, block: int) -> tuple[int, int] | None:
        """What a plan calls that UM block now: a name, and the block's index in what has the name;
        None: there is no such block.
        """
        name, index = ffi.new("uint64_t *"), ffi.new("uint32_t *")
        found = lib.deepum_core_name_block(self._handle, slot, block, name, index) == 0
        return (int(name[0]), int(index[0])) if found else None

    def follow_plan(self, launches: Sequence[int], moves: Sequence[PlannedMove]) -> None:
        """The plan of an iteration is followed while execution hashes of launches are those in
        `launches`; none: no plan any more.

        ValueError: a move is of no launch of the plan or of no block, or `moves` are not in the
        order of launches and points.
        """
        planned = ffi.new("deepum_planned_move[]", len(moves))
        for native, move in zip(planned, moves, strict=True):
            native.name, native.launch, native.first, native.count = (
                move.name,
                move.launch,
                move.first,
                move.count,
            )
            native.point, native.kind = move.point, move.kind
        if (
            lib.deepum_core_follow_plan(
                self._handle, ffi.new("uint64_t[]", launches), len(launches), planned, len(moves)
            )
            != 0
        ):
            raise ValueError("a move of the plan is of no launch, of no block, or out of order")

    def record(self, launches: int) -> None:
        """The next so many launches are recorded; what was recorded before goes. A launch that the
        detected iteration does not have there begins the recording anew. 0: nothing any longer.
        """
        if lib.deepum_core_record(self._handle, launches) != 0:
            raise MemoryError("there is no memory to record launches")

    def recorded(self) -> Recording | None:
        """What was recorded; None until all of it is."""
        if not lib.deepum_core_has_recorded(self._handle):
            return None
        count = int(lib.deepum_core_recorded_launches(self._handle, ffi.NULL, 0))
        launches = ffi.new("deepum_recorded_launch[]", max(count, 1))
        lib.deepum_core_recorded_launches(self._handle, launches, count)
        used = int(lib.deepum_core_recorded_uses(self._handle, ffi.NULL, 0))
        uses = ffi.new("deepum_recorded_use[]", max(used, 1))
        lib.deepum_core_recorded_uses(self._handle, uses, used)
        return Recording(
            bytes(ffi.buffer(launches, count * Recording.LAUNCH_BYTES)),
            bytes(ffi.buffer(uses, used * Recording.USE_BYTES)),
        )

    def want_times(self, wanted: bool) -> None:
        """Whether PROGRESS events are wanted for the times of launches (`launch_times`)."""
        lib.deepum_core_want_times(self._handle, wanted)

    @property
    def wants_times(self) -> bool:
        """Whether they are."""
        return bool(lib.deepum_core_wants_times(self._handle))

    def launch_times(self) -> list[LaunchTime]:
        """When launches had completed, as far as it became known since the call before."""
        times = ffi.new("deepum_launch_time[]", _MOST_TIMES)
        count = int(lib.deepum_core_take_times(self._handle, times, _MOST_TIMES))
        return [
            LaunchTime(
                int(t.launch),
                int(t.completed_at),
                int(t.waited) if t.waited != _UNKNOWN else None,
            )
            for t in times[0:count]
        ]

    @property
    def wants_faults(self) -> bool:
        """Whether observed faults, or times of launches, are of use now."""
        return bool(lib.deepum_core_wants_faults(self._handle))

    @property
    def wants_reads(self) -> bool:
        """Whether it is of use now to be told what launches only read."""
        return bool(lib.deepum_core_wants_reads(self._handle))

    @property
    def wants_free_memory(self) -> bool:
        """Whether it is of use now to be told what is free of the devices."""
        return bool(lib.deepum_core_wants_free_memory(self._handle))

    def statistics(self) -> CoreStatistics:
        """The counters as they are now."""
        native = ffi.new("deepum_core_statistics *")
        lib.deepum_core_get_statistics(self._handle, native)
        return CoreStatistics(
            **{field.name: int(getattr(native, field.name)) for field in fields(CoreStatistics)}
        )

    def save_tables(self) -> bytes:
        """What was learned, as bytes that another session's `load_tables` understands."""
        needed = int(lib.deepum_core_save_tables(self._handle, ffi.NULL, 0))
        target = ffi.new("uint8_t[]", max(needed, 1))
        written = int(lib.deepum_core_save_tables(self._handle, target, needed))
        return bytes(ffi.buffer(target, written))

    def load_tables(self, profile: Buffer) -> None:
        """Replaces what was learned. Raises ValueError when the bytes are no profile of this
        version; nothing is changed then.
        """
        view = memoryview(profile).cast("B")
        if (
            lib.deepum_core_load_tables(
                self._handle, ffi.from_buffer("uint8_t[]", view), view.nbytes
            )
            != 0
        ):
            raise ValueError("not a profile of this version, or damaged")
