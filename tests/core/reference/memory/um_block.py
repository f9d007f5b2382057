"""UM blocks, and what launches do with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

# Of an allocation, or of a PyTorch block by size and ordinal.
Name = tuple[str, int, int] | tuple[str, int]
Run = tuple[Name, int, int]  # so many UM blocks of what bears the name, from the first
Span = tuple[int, int, int]  # likewise of a slot


class Use(Enum):
    """What a launch does with what it touches."""

    UNKNOWN = 0
    READS = 1
    WRITES = 2
    DIES = 3  # its content ends


# Parts of a run: other tensors may share its first and its last UM block.
FIRST, INNER, LAST = range(3)


@dataclass(frozen=True)
class NextUse:
    """What comes after an execution's use of a part of one of its runs."""

    use: Use = Use.UNKNOWN  # by the launch that uses it next, or that it dies before
    gap: int = 0  # so many launches later; 0: not known
    work: int = 0  # UM blocks that are touched until then, each launch counting as one more
    round: int = 0  # launch of which that was learned
    left: bool = False  # the block left the device in between,
    leaves: bool = False  # or leaves it later, before it is written again


@dataclass(eq=False)
class RunUse:
    """What an execution does with one of its runs."""

    now: Use = Use.UNKNOWN
    next: list[NextUse] = field(default_factory=lambda: [NextUse()] * 3)  # by part
    is_past: bool = False  # the execution was given up, or touches something else now
    # Write-backs ahead of need of what it wrote that were for nothing, less those that were not.
    in_vain: int = 0

    def leaves(self) -> bool:
        return any(part.leaves for part in self.next)

    def stays_first(self, work: int) -> bool:
        """It is used before it leaves, and so much is touched before that, or more."""
        return any(part.leaves and not part.left and part.work >= work for part in self.next)


@dataclass
class Access:
    """What a launch touches, and what for."""

    span: Span
    run: Run
    use: Use
    leaves: bool = False  # the blocks leave the device later, before they are written again
    creates: bool = False  # no launch used the content before
    run_use: RunUse | None = None  # None: an access before in the same launch has the same run


class Place(Enum):
    """The list of an eviction policy that a resident block is in."""

    EVICTABLE = 0  # no launch is known to need it
    EVICTABLE_CLEAN = 1  # likewise, and the host has the same content
    COOLING_DOWN = 2  # used so lately that its space would come late
    EXPECTED = 3  # by a launch to come
    EXPECTED_CLEAN = 4  # likewise, and the host has the same content
    DEAD = 5  # inactive PyTorch memory, with invalidation
    PINNED = 6  # the program prefers it on the device


@dataclass(eq=False)
class UmBlock:
    """Each part of its state has one writer, which is named above it."""

    # AddressSpace, once.
    slot: int
    index: int
    generation: int  # of the slot's allocation
    device: int
    of_program: bool  # the program asked for managed memory itself
    # AddressSpace and, where a block gains or loses its content, Placer and Departures.
    populated: bool = False  # it has content somewhere
    dead: bool = False  # all of it is inactive PyTorch memory
    fresh: bool = True  # nothing that is needed was written to it yet
    died: int = 0  # event
    filled: int = 0  # launch at which it got the content that it has
    # ResidencyBelief.
    resident: bool = False
    clean: bool = False  # the host has the same content
    faulted: bool = False
    write_faulted: bool = False
    confirmed: int = 0  # launch at which it was last known to be there; 0: that is doubtful
    fetches_at_confirmation: int = 0  # blocks that had been fetched to its device by then
    migrated: int = 0  # its device's count of migrations when it became resident
    # The latest moves: CommandStream; the uses that moves wait for: Placer and Reference.
    move_in: int = 0
    move_out: int = 0
    out_keeps: bool = False  # the move out was a write-back: the device kept its copy
    in_populates: bool = False  # the move in was without content
    discard: int = 0
    fetch: int = 0  # the move that made it resident
    last_use: int = 0  # event of the launch that used it last
    streams: int = 0  # that it was used on since it was last moved, a bit each
    first_use: int = 0  # event of the first launch that used it since it was last fetched,
    first_stream: int = 0  # and its stream
    evicted_for: int = 0  # launch that got its space
    claim: int = 0  # the placement that claimed it last
    # EvictionPolicy.
    place: Place = Place.EVICTABLE
    prefetched: bool = False  # for a launch to come, and not used since
    pinned: bool = False  # the program prefers it on the device, until its content dies
    order_launch: int = 0  # of its last use, or of the next one if it is expected
    afterwards: int = 0  # launch that is expected to use it after that one
    migrations_at_use: int = 0  # its device's count of migrations at its last use
    # UseTracker.
    last_launch: int = 0  # that used it,
    work_before: int = 0  # the work before that,
    user: RunUse | None = None  # what it does with it,
    part: int = FIRST  # as this part of the run
    writer: RunUse | None = None  # the same of the launch that wrote it last, or may have
    next_launch: int = 0  # that will use it, or that it dies before; 0: none is known
    next_use: Use = Use.UNKNOWN  # by that one
    left_since: bool = False  # it left the device after its last use
    # CopyBack.
    read_mostly: bool = False  # a prefetch duplicates it
    ahead_of_need: bool = False  # the host's copy was written back ahead of need
    written_at: int = 0  # launch that wrote it last, or may have
    valid_since: int = 0  # event at which the copy was decided
    single_since: int = 0  # event at which it was last made to be in one place
    # HostResidents; what the program prefers: Reference.
    by_program: bool = False  # the program prefers it on the host
    advised: bool = False  # it was advised to stay there,
    of_group: bool = False  # as one of a group of tensors, whatever launches use it,
    also_dense: bool = False  # or that was a mistake: other launches use it too
    mapped: bool = False  # ACCESSED_BY: launches that touch some rows read it where it is
    advice_refused: bool = False
    sparse_uses: int = 0  # in a row

    @property
    def stays_on_host(self) -> bool:
        return self.by_program or self.advised

    def read_in_place(self, sparse_launch: bool) -> bool:
        return sparse_launch and self.mapped
