"""UM blocks in plain Python, and what is known of their uses."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

Name = tuple[str, int, int] | tuple[str, int]  # of an allocation, or of a PyTorch block by (size, ordinal)
Run = tuple[Name, int, int]
Span = tuple[int, int, int]


class Use(Enum):
    """What a launch does with what it touches."""

    UNKNOWN = 0
    READS = 1
    WRITES = 2
    DIES = 3  # its content ends


class Place(Enum):
    """The list of its memory that a resident block is in."""

    KEPT = 0
    RESTING = 1  # used lately
    EXPECTED = 2  # by launches to come
    DEAD = 3  # inactive PyTorch memory, with invalidation


FIRST, INNER, LAST = range(3)  # parts of a run: other tensors may share its first and its last UM block


@dataclass(frozen=True)
class NextUse:
    """What comes after an execution's use of a part of one of its runs."""

    use: Use = Use.UNKNOWN  # by the launch that uses it next, or that it dies before
    gap: int = 0  # so many launches later; 0: not known
    touched: int = 0  # so many UM blocks are touched until then, each launch counting as one more
    round: int = 0  # launch of which that was learned
    left: bool = False  # it left in between,
    leaves: bool = False  # or what it had then left later, before it was written again


@dataclass(eq=False)
class RunUse:
    """What an execution does with one of its runs."""

    now: Use = Use.UNKNOWN
    next: list[NextUse] = field(default_factory=lambda: [NextUse()] * 3)  # by part
    forgotten: bool = False  # the execution was given up, or touches something else now
    in_vain: int = 0  # copies ahead of what it wrote that were for nothing, less those that were not

    def leaves(self) -> bool:
        return any(part.leaves for part in self.next)

    def stays_first(self, touched: int) -> bool:
        """It is used before it leaves, and so much is touched before that, or more."""
        return any(part.leaves and not part.left and part.touched >= touched for part in self.next)


class SpanUse(NamedTuple):
    """What a launch does with a span, and whether that leaves later before it is written again."""

    now: Use
    leaves: bool


@dataclass(eq=False)
class UmBlock:
    slot: int
    index: int
    use_position: int = 0  # launch of its last use, or of the next one if it is expected
    again: int = 0  # launch that is expected to use it after that one
    used: int = 0  # launch that used it last,
    touched: int = 0  # what launches had touched before that,
    user: RunUse | None = None  # and what it does with it,
    part: int = FIRST  # as this part of the run
    awaited: int = 0  # launch that will use it next, or that it dies before; 0: none is known
    next_use: Use = Use.UNKNOWN  # by that one
    written_at: int = 0  # launch that wrote it last, or may have,
    writer: RunUse | None = None  # and that use
    filled: int = 0  # launch at which it got the content that it has
    mostly: bool = False  # READ_MOSTLY,
    copied: bool = False  # and the host has what the device has
    copied_since: int = 0  # sequence at which that was decided
    single_since: int = 0  # sequence at which it was last made to be in one place
    used_after: int = 0  # blocks that had become resident before its last use
    fetched: bool = False
    fresh: bool = True  # nothing that is needed was written to it yet
    dead: bool = False
    migrated: int = 0  # rises from block to block that became resident
    claim: int = 0  # the placement that claimed it last
    use_sequence: int = 0
    streams: int = 0
    evicted_for: int = 0  # launch that got its space
    moved_in: int = 0
    brought: int = 0  # the prefetch that made it resident
    moved_out: int = 0
    discarded: int = 0
    died: int = 0  # sequence
    first_use: int = 0  # sequence, since it was last brought,
    first_stream: int = 0  # and on which
    confirmed: int = 0
    confirmed_after: int = 0  # blocks fetched to its device before
    resident: bool = False
    left: bool = False  # since its last use
    stayed: bool = False  # when it was moved out: it was copied
    copied_ahead: bool = False  # the host's copy was made ahead of need
    populates: bool = False  # when it was moved in: it had no content
    populated: bool = False
    faulted: bool = False
    written: bool = False
    host: bool = False  # the program wants it there
    remote: bool = False  # advised to stay there,
    away: bool = False  # as one of a group, whatever launches use it,
    dense: bool = False  # or it was a mistake: other launches use it too
    mapped: bool = False  # ACCESSED_BY: launches that touch some rows need not have it on the device
    refused: bool = False  # advice for it failed
    sparse_uses: int = 0  # in a row
    place: Place = Place.KEPT

    @property
    def stays_away(self) -> bool:
        return self.host or self.remote
