"""What the plain-Python decision core believes of a device's memory: its UM blocks, in the order in which they are to go."""

from __future__ import annotations

import bisect
from collections import deque
from dataclasses import dataclass, field

from reference_block import Name, Place, UmBlock, Use
from reference_expected import Expected
from reference_room import Room

MISTAKE = 4  # blocks by which one narrows the window
REST_LAUNCHES, REST_BLOCKS = 2, 32  # since a last use: on small cards and in short iterations less,
LONG_REST, REST_SHARE = 32, 16  # and so many launches or that part of the device in blocks
DYING = 16  # times as far as it is, what ends by itself goes
MOST_ODDS = 6  # in a row: uses at another time
ONE_GO, LONG_GO = 16, 8  # parts of an iteration after which a use is another, and which one go may take


@dataclass
class Regularity:
    """When launches use a tensor: whether in one go an iteration."""

    used: int = 0  # launch that did last,
    began: int = 0  # the first of these,
    odd: int = 0  # and the last one at another time,
    odds: int = 0  # of which so many came in a row

    def note(self, position: int, iteration: int) -> bool:
        """True: it is not the first time that they come otherwise."""
        gap = position - self.used
        another = not self.used or gap > iteration // ONE_GO
        late = gap < iteration - iteration // LONG_GO if another else position - self.began > iteration // LONG_GO
        odd = bool(self.used and iteration and late)
        self.used, self.began = position, position if another else self.began
        self.odds = min(self.odds + 1, MOST_ODDS) if odd else 0 if another else self.odds
        self.odd = position if odd else self.odd
        return self.odds == MOST_ODDS

    def once_an_iteration(self, position: int, iteration: int) -> bool:
        lately = self.used != 0 and position - self.used <= iteration + iteration // LONG_GO
        return lately and (not self.odd or position - self.odd > 2 * iteration)


@dataclass
class TorchBlock:
    born: int  # launches before it
    bytes: int
    ordinal: int
    key: int
    name: Name
    regularity: Regularity = field(default_factory=Regularity)


@dataclass
class Allocation:
    generation: int
    device: int
    name: Name
    bytes: int
    born: int  # launches before it
    blocks: list[UmBlock]
    first_offset: int = 0  # of its first byte in UM block 0
    active: dict[int, TorchBlock] = field(default_factory=dict)
    reported: bool = False
    of_program: bool = False
    regularity: Regularity = field(default_factory=Regularity)


@dataclass
class Memory:
    """A device's."""

    known: bool = False
    capacity: int = 0
    room: Room = field(default_factory=Room)
    allocated: int = 0
    ordinal: int = 0
    # Evictions whose space is not taken yet, and discards, each with the sequence of the launch that it waits for.
    freed: deque[tuple[int, int]] = field(default_factory=deque)
    emptied: deque[tuple[int, int]] = field(default_factory=deque)
    dead: list[UmBlock] = field(default_factory=list)  # resident, the first to die first
    soon: int = 0  # blocks with new content that the next launches need at most, as was foreseen
    foreseen_at: int = 0  # at that launch
    # By kind and direction: what is brought by commands of that kind, from now on, waits for moves of that direction up to here.
    awaited: dict[tuple[str, str], int] = field(default_factory=dict)
    kept: list[UmBlock] = field(default_factory=list)  # resident, first to be evicted first
    copied: list[UmBlock] = field(default_factory=list)  # the same of what the host has as well
    to_copy: deque[UmBlock] = field(default_factory=deque)  # to be copied out at once,
    to_settle: deque[tuple[UmBlock, int]] = field(default_factory=deque)  # and once that is settled which a launch wrote
    evictions: int = 0  # blocks, since that launch
    counted_from: int = 0
    copied_away: int = 0  # launch at which a block last left by a copy,
    demanded: int = 0  # and at which one last did because its space was wanted
    evicted_lately: int = 0  # in the iteration before it
    resting: list[UmBlock] = field(default_factory=list)  # by next use: what was used lately, the first used first
    expected: Expected = field(default_factory=Expected)
    expected_copied: Expected = field(default_factory=Expected)  # by next use: of these what the host has as well
    latest: int = 0  # launch
    woken: int = 0  # blocks that have rested, of late,
    foreseen: int = 0  # of which the next use was known
    wanted: int = 0  # blocks that the launch being placed misses
    fetched: int = 0  # blocks, for launches to come
    only_placed: bool = False  # what is expected is what was placed
    grown: int = 0  # blocks with new content since the latest launch, less those that died,
    died_away: int = 0  # of which so many were not here
    reserved: int = 0  # blocks needed besides what exists by the last launch placed,
    most_reserved: int = 0  # and by the one on the way there that needs most
    by_migration: bool = False  # the order,
    by_next_use: bool = False  # by last use otherwise
    launch_queue: int = 0
    migrations: int = 0
    fetches: int = 0  # of blocks with content, under pressure
    freely_doubted: int = 0  # asked for again without having been unconfirmed for long
    used: int = 0
    mistakes: int = 0  # that narrowed the window
    withheld: int = 0  # of the capacity, from what may be expected
    full: bool = False  # the window held a launch off since the last one
    out_streams: int = 0  # that the latest eviction waits for
    mixed: int = 0  # launch at which evictions last waited for different streams
    held: dict[tuple[int, str], int] = field(default_factory=dict)  # by stream and kind: the latest that a launch was held for

    def free(self) -> int:
        return max(0, self.capacity - self.used)

    def under_pressure(self) -> bool:
        return self.known and self.allocated > self.capacity

    def doubt_all_once(self) -> None:
        """The driver surely made room by itself."""
        self.freely_doubted -= min(self.freely_doubted, self.used)

    def add(self, block: UmBlock) -> None:
        self.migrations += 1
        block.migrated = self.migrations
        block.resident = True
        block.again = 0
        self.enlist(block)

    def drop(self, block: UmBlock) -> None:
        self.take_out(block)
        self.used -= 1
        block.resident = block.copied = False
        block.place = Place.KEPT

    # Lists.

    def order(self, block: UmBlock) -> list[UmBlock]:
        return self.copied if block.copied else self.kept

    def expecting(self, block: UmBlock) -> Expected:
        return self.expected_copied if self.by_next_use and block.copied else self.expected

    def enlist(self, block: UmBlock) -> None:
        """Into its list: at the end, or where its migration puts it."""
        if block.place is Place.EXPECTED:
            self.expecting(block).add(block)
        elif block.place is Place.RESTING:
            self.resting.append(block)
        elif block.place is Place.DEAD:
            self.dead.append(block)
        elif self.by_migration:
            bisect.insort(self.order(block), block, key=lambda other: other.migrated)
        else:
            self.order(block).append(block)

    def take_out(self, block: UmBlock) -> None:
        if block.place is Place.EXPECTED:
            self.expecting(block).remove(block)
            self.settle_fetched(block)
        else:
            lists = {Place.RESTING: self.resting, Place.DEAD: self.dead, Place.KEPT: self.order(block)}
            lists[block.place].remove(block)

    def settle_fetched(self, block: UmBlock) -> None:
        self.fetched -= block.fetched
        block.fetched = False

    def put(self, block: UmBlock, place: Place, position: int) -> None:
        self.take_out(block)
        block.place, block.use_position = place, position
        self.enlist(block)

    def copy(self, block: UmBlock, copied: bool = True) -> None:
        """The host has what it has, or has it no longer."""
        moves = block.place is Place.KEPT or (self.by_next_use and block.place is Place.EXPECTED)
        if not block.resident or not moves or block.copied == copied:
            block.copied = copied
            return
        fetched = block.fetched
        self.take_out(block)
        block.copied = copied
        self.enlist(block)
        self.fetched += fetched
        block.fetched = fetched

    def uncopy(self, block: UmBlock) -> None:
        self.copy(block, copied=False)
        block.copied_ahead = False

    def arrivals(self) -> list[UmBlock]:
        """Resident, in the order of their migration."""
        expected = [*self.expected.beyond(-1), *self.expected_copied.beyond(-1)]
        return sorted([*self.kept, *self.copied, *self.resting, *self.dead, *expected], key=lambda block: block.migrated)

    def renew(self, block: UmBlock) -> None:
        self.migrations += 1
        block.migrated = self.migrations
        if block.place is Place.KEPT and self.by_migration:
            self.order(block).remove(block)
            self.order(block).append(block)

    # Uses, and those to come.

    def use(self, block: UmBlock, position: int) -> None:
        block.used_after = self.migrations
        if self.by_next_use:
            later = block.place is Place.EXPECTED and block.use_position > position
            foreseen = block.use_position if later else block.again
            self.put(block, Place.RESTING, position)
            block.again = foreseen if foreseen > position else 0
        elif block.place is Place.EXPECTED and block.use_position > position:
            self.settle_fetched(block)
        elif block.again > position:
            again, block.again = block.again, 0
            self.put(block, Place.EXPECTED, again)
        elif block.place is Place.KEPT and self.by_migration:
            block.use_position = position
        else:
            self.put(block, Place.KEPT, position)

    def spare(self, block: UmBlock, position: int) -> None:
        """The program brought it, or handed it out."""
        if self.by_next_use:
            block.used_after = self.migrations
            self.put(block, Place.RESTING, position)
        elif block.place is Place.DEAD:
            self.put(block, Place.KEPT, block.use_position)

    def expect(self, block: UmBlock, position: int) -> None:
        if block.place is Place.RESTING:
            block.again = position if block.again <= self.latest else min(block.again, position)
        elif block.place is not Place.EXPECTED:
            block.again = 0
            self.put(block, Place.EXPECTED, position)
        elif position < block.use_position:
            block.again = block.use_position
            self.put(block, Place.EXPECTED, position)
        elif position > block.use_position and block.again == 0:
            block.again = position

    def overdue(self, block: UmBlock) -> bool:
        """A use was missed that had been learned: then the chain's is a later iteration's."""
        return self.by_next_use and 0 < block.awaited <= self.latest

    def expect_none_until(self, position: int) -> None:
        self.latest = position
        for expected in (self.expected, self.expected_copied):
            for block in expected.overdue(position):
                again, block.again = block.again, 0
                if again > position:
                    self.put(block, Place.EXPECTED, again)
                else:
                    self.put(block, Place.KEPT, block.use_position)

    def expect_nothing(self) -> None:
        """The chain ends; what was learned of next uses stands."""
        while not self.by_next_use and len(self.expected):
            block = self.expected.beyond(-1)[0]
            block.again = 0
            self.put(block, Place.KEPT, block.use_position)

    def wake(self, position: int, iteration: int) -> None:
        """What has rested is expected by its next use, or by none."""
        while self.resting and self.has_rested(self.resting[0], position, iteration):
            block = self.resting[0]
            learned = block.awaited
            if block.next_use is Use.DIES:
                learned = block.used + DYING * (block.awaited - block.used)
            learned = learned if block.awaited > position else 0
            predicted = block.again if block.again > position and not self.overdue(block) else 0
            self.woken += 1
            self.foreseen += learned > 0 or predicted > 0
            if self.woken >= 2 * self.capacity:
                self.woken //= 2
                self.foreseen //= 2
            if 2 * self.foreseen < self.woken:
                learned = 0
            first, *later = sorted({learned, predicted} - {0}) or [0]
            block.again = later[0] if later else 0
            self.put(block, Place.EXPECTED if first else Place.KEPT, first or block.use_position)

    def has_rested(self, block: UmBlock, position: int, iteration: int) -> bool:
        launches, brought = position - block.use_position, self.migrations - block.used_after
        share = self.capacity // REST_SHARE
        enough = launches >= min(REST_LAUNCHES, iteration // REST_SHARE) and brought >= min(REST_BLOCKS, share)
        return launches > self.launch_queue or (enough and (launches >= LONG_REST or brought >= share))

    # Space.

    def ahead(self) -> int:
        return len(self.expected) if self.only_placed else self.fetched

    def reserved_blocks(self) -> int:
        return max(self.reserved, self.most_reserved, 0)

    def window(self) -> int:
        return self.capacity - min(self.withheld, self.capacity - self.capacity // 8)

    def narrow(self) -> None:
        self.mistakes += 1
        self.withheld = max(self.withheld, self.capacity - min(self.capacity, self.ahead())) + MISTAKE

    def only_freed(self) -> bool:
        return not self.emptied and self.free() <= len(self.freed)

    def frees_first(self) -> bool:
        return bool(self.freed) and (not self.emptied or self.freed[0][1] < self.emptied[0][1])

    def take_space(self, fetches: bool) -> tuple[int, int]:
        """The eviction or the discard that makes it; by next use prefetches take what is free sooner, all else that of discards."""
        while len(self.freed) + len(self.emptied) > self.free():  # the first to be free is what is not there
            (self.freed if not self.emptied or self.frees_first() else self.emptied).popleft()
        self.used += 1
        unclaimed = max(0, self.capacity - self.used)
        if unclaimed >= len(self.freed) + len(self.emptied):
            return 0, 0
        if not self.emptied or (fetches and self.by_next_use and self.frees_first()):
            return self.freed.popleft()[0], 0
        return 0, self.emptied.popleft()[0]
