"""The swap planner and the simulated dataflow engine (native/swapadvisor, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from deepum._core import ffi, lib
from deepum.planners import Link
from deepum.swapadvisor.allocation import Allocation, Sizes
from deepum.swapadvisor.graph import Graph, Schedule

THRESHOLD = 4  # operators between a victim's last use and that for which it leaves


class Kind(IntEnum):
    """What a move is. PLACE: an output gets its object; HELD: a parameter is there from the
    beginning; both take no time.
    """

    IN = lib.DEEPUM_SWAPADVISOR_IN
    OUT = lib.DEEPUM_SWAPADVISOR_OUT
    PLACE = lib.DEEPUM_SWAPADVISOR_PLACE
    HELD = lib.DEEPUM_SWAPADVISOR_HELD


@dataclass(frozen=True)
class Move:
    """A node of the augmented graph. object: of the pool, all classes numbered through. It waits
    for the operator at position `after_operator` of the schedule and for the moves of the numbers
    `after_moves`; the operator at `position` waits for it. order: among all nodes, as they begin;
    None where it takes no time.
    """

    kind: Kind
    tensor: int
    object: int
    position: int
    after_operator: int | None
    after_moves: tuple[int, ...]
    order: int | None
    start_ns: float
    end_ns: float


@dataclass(frozen=True)
class Run:
    """Of an operator, by position."""

    start_ns: float
    end_ns: float
    order: int


@dataclass(frozen=True)
class Outcome:
    """What an iteration takes, and moves. ns is infinite where an operator needs more objects than
    its classes have.
    """

    ns: float
    in_bytes: int
    out_bytes: int


@dataclass(frozen=True)
class SwapPlan:
    """The augmented graph, and when each node of it ran."""

    schedule: Schedule
    allocation: Allocation
    outcome: Outcome
    moves: tuple[Move, ...]
    runs: tuple[Run, ...]


class Engine:
    """A graph on a device. Raises ValueError for times and sizes that are negative, and rates that
    are not positive.
    """

    def __init__(self, graph: Graph, link: Link, threshold: int = THRESHOLD) -> None:
        self.graph, self.link, self.threshold = graph, link, threshold
        self.sizes = Sizes.of(graph, link.memory_bytes)
        self._options = ffi.new("deepum_swapadvisor_options *", (threshold, 2))
        tensors = ffi.new("deepum_swapadvisor_tensor[]", max(len(graph.tensors), 1))
        for row, tensor in zip(tensors, graph.tensors, strict=False):
            row.bytes, row.starts, row.stays = tensor.bytes, tensor.starts, tensor.stays
        entries = [
            (number, use.tensor, use.reads, use.writes)
            for number, operator in enumerate(graph.operators)
            for use in operator.uses
        ]
        uses = ffi.new("deepum_swapadvisor_use[]", max(len(entries), 1))
        for row, values in zip(uses, entries, strict=False):
            row.operation, row.tensor, row.reads, row.writes = values
        edges = np.array(graph.edges, dtype=np.int32).reshape(-1, 2)
        times = np.array([operator.ns for operator in graph.operators], dtype=np.float64)
        made = lib.deepum_swapadvisor_create(
            ffi.cast("double *", times.ctypes.data),
            len(times),
            tensors,
            len(graph.tensors),
            uses,
            len(entries),
            ffi.cast("deepum_swapadvisor_edge *", edges.ctypes.data),
            len(edges),
            link.in_gbps,
            link.out_gbps,
        )
        if made == ffi.NULL:
            raise ValueError(
                "graph: has no operator, a negative time, a tensor without bytes, or the link's "
                "rates are not positive"
            )
        self._native = ffi.gc(made, lib.deepum_swapadvisor_destroy)

    def evaluate(self, schedule: Schedule, allocation: Allocation, passes: int = 2) -> Outcome:
        """What the plan for them takes. passes: 1 for an iteration that finds no parameter on the
        device (the first pass alone). Raises ValueError where they are of another graph.
        """
        return self._outcome(schedule, allocation, passes, ffi.NULL, ffi.NULL, 0)[0]

    def plan(self, schedule: Schedule, allocation: Allocation, passes: int = 2) -> SwapPlan | None:
        """The plan itself. None where an operator cannot run."""
        outcome, count = self._outcome(schedule, allocation, passes, ffi.NULL, ffi.NULL, 0)
        if outcome.ns == float("inf"):
            return None
        moves = ffi.new("deepum_swapadvisor_move[]", max(count, 1))
        runs = ffi.new("deepum_swapadvisor_run[]", len(self.graph.operators))
        self._outcome(schedule, allocation, passes, runs, moves, count)
        return SwapPlan(
            schedule,
            allocation,
            outcome,
            tuple(_move(move) for move in moves[0:count]),
            tuple(Run(run.start_ns, run.end_ns, run.order) for run in runs),
        )

    def mutated(self, schedule: Schedule, chance: float, seed: int) -> Schedule:
        """Of the operators that are ready a random one with that chance, else that which `schedule`
        has first, and so on (section 5.2). The same seed makes the same.
        """
        parent = np.ascontiguousarray(schedule, dtype=np.int32)
        made = np.empty_like(parent)
        if (
            len(parent) != len(self.graph.operators)
            or lib.deepum_swapadvisor_mutate(self._native, _ints(parent), chance, seed, _ints(made))
            != 0
        ):
            raise ValueError("schedule: is not of this graph")
        return made

    def _outcome(
        self,
        schedule: Schedule,
        allocation: Allocation,
        passes: int,
        runs: Any,
        moves: Any,
        capacity: int,
    ) -> tuple[Outcome, int]:
        if len(schedule) != len(self.graph.operators) or len(allocation.classes) != len(
            self.sizes.sizes
        ):
            raise ValueError("schedule or allocation: is not of this graph")
        self._options.passes = passes
        order = np.ascontiguousarray(schedule, dtype=np.int32)
        of_size = np.asarray(allocation.classes, dtype=np.int32) - 1
        of_tensor = np.ascontiguousarray(of_size[self.sizes.of_tensor])
        counts = np.asarray(allocation.counts, dtype=np.int64)
        found = lib.deepum_swapadvisor_evaluate(
            self._native,
            _ints(order),
            _ints(of_tensor),
            ffi.cast("int64_t *", counts.ctypes.data),
            len(counts),
            self._options,
            runs,
            moves,
            capacity,
        )
        if found.stuck == -2:
            raise ValueError("schedule or allocation: is not of this graph")
        ns = found.ns if found.stuck == -1 else float("inf")
        return Outcome(ns, int(found.in_bytes), int(found.out_bytes)), int(found.moves)


def _move(native: Any) -> Move:
    return Move(
        Kind(native.kind),
        native.tensor,
        native.object,
        native.position,
        native.after_operation if native.after_operation >= 0 else None,
        tuple(move for move in native.after_moves if move >= 0),
        native.order if native.order >= 0 else None,
        native.start_ns,
        native.end_ns,
    )


def _ints(array: npt.NDArray[np.int32]) -> Any:
    return ffi.cast("int32_t *", array.ctypes.data)
