"""What a plan of an iteration says to a core (`Core.follow_plan`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from deepum._core import lib


class PlannedKind(IntEnum):
    """What a planned move does."""

    PREFETCH = lib.DEEPUM_PLAN_PREFETCH
    EVICT = lib.DEEPUM_PLAN_EVICT


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
