"""What a plan of an iteration says to a core (`Core.follow_plan`), and the iteration that it is
made of (`Core.recorded`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar

from deepum._core import ffi, lib


class PlannedKind(IntEnum):
    """What a planned move does."""

    PREFETCH = lib.DEEPUM_PLAN_PREFETCH
    EVICT = lib.DEEPUM_PLAN_EVICT
    COPY_OUT = lib.DEEPUM_PLAN_COPY_OUT
    DUPLICATE = lib.DEEPUM_PLAN_DUPLICATE


class PlanPoint(IntEnum):
    """When, at its launch: before the launch's own blocks are brought, after it, or when the
    program waits next.
    """

    BEFORE_LAUNCH = lib.DEEPUM_PLAN_BEFORE_LAUNCH
    AFTER_LAUNCH = lib.DEEPUM_PLAN_AFTER_LAUNCH
    AT_WAIT = lib.DEEPUM_PLAN_AT_WAIT


@dataclass(frozen=True)
class PlannedMove:
    """UM blocks [first, first + count) of what has that name (`Core.name_block`) move at launch
    number `launch` of the iteration.
    """

    launch: int
    point: PlanPoint
    kind: PlannedKind
    name: int
    first: int
    count: int


@dataclass(frozen=True)
class Plan:
    """An iteration's execution hashes, and what moves at its launches, in the order of launches and
    points. It names nothing by place, so that it holds in the next run. outline: what it was made
    of (`deepum.planners.outline`), to be drawn; to follow the plan it is not needed.
    """

    launches: Sequence[int]
    moves: Sequence[PlannedMove]
    outline: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class Recording:
    """An iteration as a core saw it: records of `deepum_recorded_launch` and of
    `deepum_recorded_use` (native/core/core.h), as bytes.
    """

    launches: bytes
    uses: bytes

    LAUNCH_BYTES: ClassVar[int] = ffi.sizeof("deepum_recorded_launch")
    USE_BYTES: ClassVar[int] = ffi.sizeof("deepum_recorded_use")

    @property
    def launch_count(self) -> int:
        """Of the iteration."""
        return len(self.launches) // self.LAUNCH_BYTES

    @property
    def blocks_read(self) -> int:
        """UM blocks that launches are known not to write, summed over them."""
        uses = ffi.from_buffer("deepum_recorded_use[]", self.uses)
        return sum(int(use.count) for use in uses if use.kind == 0)


@dataclass(frozen=True)
class LaunchTime:
    """All launches up to that one, counted from 1, had completed by then, and their stream had
    stood still for moves for so long: microseconds of the GPU's clock. waited None: launches do not
    wait for their moves.
    """

    launch: int
    completed_at: int
    waited: int | None
