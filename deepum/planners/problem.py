"""An iteration on a device, and what can be done with plans of it (native/planning)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deepum._core import ffi, lib
from deepum.planners.iteration import Iteration, Link

# By gap of a problem: 1, the item is evicted in it, 0, it stays.
Plan = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
# Rows of what happens in a replay (native/planning/planning.h).
TRANSFER = np.dtype(
    [("start_ns", "<f8"), ("end_ns", "<f8"), ("item", "<i4"), ("out", "u1")], align=True
)
LEVEL = np.dtype([("ns", "<f8"), ("bytes", "<i8")])
assert TRANSFER.itemsize == ffi.sizeof("deepum_planning_transfer")
assert LEVEL.itemsize == ffi.sizeof("deepum_planning_level")
Records = npt.NDArray[np.void]
_NONE = NOT_FETCHED = NOT_COPIED = -(2**31)
_FAR = 2**30


@dataclass(frozen=True)
class Gap:
    """An item from the launch that uses it (`start`) to the next one (`end`, up to an iteration
    later). death: launch before which the content ends. writer: launch that wrote it last, negative
    in an earlier iteration. version: of the content; gaps behind the same write share it. fetches:
    the launch at `end` needs the content.
    """

    item: int
    start: int
    end: int
    death: int | None
    writer: int | None
    version: int
    fetches: bool


@dataclass(frozen=True)
class Replayed:
    """What a plan takes, carried out: ns and bytes of an iteration, and by launch when it ended and
    how long it waited. ns is infinite where a launch could never run. fetched_behind: by gap, the
    launch that ran, or had run, when the content for the launch at its end was fetched, of that
    one's iteration or negative in one before; `NOT_FETCHED` where nothing was. copied_behind: by
    gap, the launch that ran, or had run, when the content was copied out ahead of its first
    eviction, counted from the iteration of the launch that wrote it; `NOT_COPIED` where it was not.
    left: by gap, 1 where the item left; 0 where it was not to, or its content ended or was needed
    before its copy was done.
    """

    ns: float
    in_bytes: int
    out_bytes: int
    ends_ns: Floats
    stall_ns: Floats
    fetched_behind: npt.NDArray[np.int32]
    copied_behind: npt.NDArray[np.int32]
    left: Plan


class Problem:
    """Raises ValueError for events that are of no launch or out of order, and for memory or rates
    that are not positive.
    """

    def __init__(self, iteration: Iteration, link: Link) -> None:
        self.iteration, self.link = iteration, link
        self.item_bytes = np.array([item.bytes for item in iteration.items], dtype=np.int64)
        launch_ns = np.array(iteration.launch_ns, dtype=np.float64)
        rows = [
            (number, event.launch, event.dies, event.reads, event.writes)
            for number, item in enumerate(iteration.items)
            for event in item.events
        ]
        events = ffi.new("deepum_planning_event[]", max(len(rows), 1))
        for row, event in zip(rows, events, strict=False):
            event.item, event.launch, event.kind, event.reads, event.writes = row
        machine = ffi.new(
            "deepum_planning_machine *",
            (link.memory_bytes, link.in_gbps, link.out_gbps, link.copies_early),
        )
        made = lib.deepum_planning_create(
            machine,
            _doubles(launch_ns),
            len(launch_ns),
            ffi.cast("int64_t *", self.item_bytes.ctypes.data),
            len(self.item_bytes),
            events,
            len(rows),
        )
        if made == ffi.NULL:
            raise ValueError(
                "iteration: an event is of no launch or not in order, or the link's memory or its "
                "rates are not positive"
            )
        self._native = ffi.gc(made, lib.deepum_planning_destroy)
        native = ffi.new("deepum_planning_gap[]", max(len(self), 1))
        lib.deepum_planning_gaps(self._native, native)
        self.gaps = [
            Gap(
                gap.item,
                gap.start,
                gap.end,
                None if gap.death == _NONE else gap.death,
                None if gap.writer == _NONE else gap.writer,
                gap.version,
                bool(gap.fetches),
            )
            for gap in native[0 : len(self)]
        ]

    def __len__(self) -> int:
        """How many gaps there are."""
        return int(lib.deepum_planning_gap_count(self._native))

    @property
    def launches(self) -> int:
        """Of the iteration."""
        return len(self.iteration.launch_ns)

    def keep_all(self) -> Plan:
        """The plan in which all items stay."""
        return np.zeros(len(self), dtype=np.uint8)

    def evict_all(self) -> Plan:
        """The plan in which all items leave after each use."""
        return np.ones(len(self), dtype=np.uint8)

    @property
    def fits(self) -> bool:
        """Whether everything may stay on the device."""
        return int(self.occupancy(self.keep_all()).max()) <= self.link.memory_bytes

    def occupancy(self, plan: Plan) -> npt.NDArray[np.int64]:
        """Bytes on the device at each launch."""
        there = np.zeros(self.launches, dtype=np.int64)
        lib.deepum_planning_occupancy(
            self._native, self._bytes(plan), ffi.cast("int64_t *", there.ctypes.data)
        )
        return there

    def replay(self, plan: Plan, *, reach: int = _FAR) -> Replayed:
        """The plan carried out. reach: launches ahead for which content is fetched."""
        ends, stall = np.zeros(self.launches), np.zeros(self.launches)
        behind = np.full(max(len(self), 1), NOT_FETCHED, dtype=np.int32)
        copied = np.full(max(len(self), 1), NOT_COPIED, dtype=np.int32)
        left = np.zeros(max(len(self), 1), dtype=np.uint8)
        options = ffi.new("deepum_planning_options *", (reach,))
        found = lib.deepum_planning_replay(
            self._native,
            self._bytes(plan),
            options,
            _doubles(stall),
            _doubles(ends),
            ffi.cast("int32_t *", behind.ctypes.data),
            ffi.cast("int32_t *", copied.ctypes.data),
            ffi.cast("uint8_t *", left.ctypes.data),
        )
        ns = found.ns if found.stuck < 0 else float("inf")
        return Replayed(
            ns,
            int(found.in_bytes),
            int(found.out_bytes),
            ends,
            stall,
            behind[: len(self)],
            copied[: len(self)],
            left[: len(self)],
        )

    def transfers(self, plan: Plan) -> Records:
        """Of the iteration that a replay measures, `TRANSFER` each, in the order in which they
        begin: ns from the iteration's beginning, negative for what was under way then; what goes on
        behind the iteration ends later. None where a launch could never run.
        """
        return self._rows(lib.deepum_planning_transfers, "deepum_planning_transfer", TRANSFER, plan)

    def levels(self, plan: Plan) -> Records:
        """Bytes that are taken on the device from a time of that iteration on, `LEVEL` each, the
        first at 0: what is there, is on its way, or has its room beforehand. None likewise.
        """
        return self._rows(lib.deepum_planning_levels, "deepum_planning_level", LEVEL, plan)

    def _rows(self, get: Any, ctype: str, dtype: np.dtype[np.void], plan: Plan) -> Records:
        options = ffi.new("deepum_planning_options *", (_FAR,))
        given = self._native, self._bytes(plan), options
        found = np.zeros(get(*given, ffi.NULL, 0), dtype)
        get(*given, ffi.cast(f"{ctype} *", found.ctypes.data), len(found))
        return found

    def belady(
        self,
        *,
        slack: float = 0.0,
        clean_bonus: float = 0.0,
        keeps_ending: bool = False,
        preset: Plan | None = None,
    ) -> Plan | None:
        """While there is too much, what is needed last leaves. slack: part of the memory that is
        left free. clean_bonus: part of an iteration by which what needs no copy counts as needed
        later. keeps_ending: what ends before its next use counts as needed at its end, not as
        needed no more. preset: by gap 1, evicted, 2, kept if it can be. None: a launch needs more
        memory.
        """
        plan = self.keep_all()
        failed = lib.deepum_planning_belady(
            self._native,
            self._memory(slack),
            clean_bonus * self.launches,
            keeps_ending,
            ffi.NULL if preset is None else self._bytes(preset),
            self._bytes(plan),
        )
        return None if failed else plan

    def relieve_pressure(self, *, slack: float = 0.0) -> Plan | None:
        """Gaps leave by the pressure that they take away for the time of their transfers (G10).
        None: it cannot fit.
        """
        plan = self.keep_all()
        failed = lib.deepum_planning_pressure(self._native, self._memory(slack), self._bytes(plan))
        return None if failed else plan

    def fill(self, plan: Plan, order: Sequence[int] | npt.NDArray[np.int_]) -> Plan:
        """The plan with evicted gaps kept where they fit, in that order."""
        filled, indices = plan.copy(), np.ascontiguousarray(order, dtype=np.int32)
        lib.deepum_planning_fill(
            self._native,
            ffi.cast("int32_t *", indices.ctypes.data),
            len(indices),
            self._memory(0),
            self._bytes(filled),
        )
        return filled

    def search(self, plan: Plan, *, tries: int, seed: int = 1) -> Plan:
        """What a local search of that many tries makes of it. The same seed finds the same."""
        found = plan.copy()
        lib.deepum_planning_search(self._native, self._bytes(found), tries, seed)
        return found

    def _memory(self, slack: float) -> int:
        return int(self.link.memory_bytes * (1 - slack))

    def _bytes(self, plan: Plan) -> Any:
        if plan.shape != (len(self),) or plan.dtype != np.uint8:
            raise ValueError(
                f"plan: has {plan.size} gaps of {plan.dtype}, not {len(self)} of uint8"
            )
        return ffi.cast("uint8_t *", plan.ctypes.data)


def _doubles(array: Floats) -> Any:
    return ffi.cast("double *", array.ctypes.data)
