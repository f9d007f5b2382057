"""What the plain-Python decision core believes of a device's memory: its UM blocks, in the order in which they are to go."""

from __future__ import annotations

import bisect
from collections import deque
from dataclasses import dataclass, field
from enum import Enum

MISTAKE = 4  # blocks by which one narrows the window

Name = tuple[str, int, int] | tuple[str, int]  # of an allocation, or of a PyTorch block by (size, ordinal)
Run = tuple[Name, int, int]
Span = tuple[int, int, int]


class Use(Enum):
    """What a launch does with what it touches."""

    UNKNOWN = 0
    READS = 1
    WRITES = 2


NEVER = -1


@dataclass(eq=False)
class RunUse:
    """What an execution does with one of its runs."""

    now: Use = Use.UNKNOWN
    next: Use = Use.UNKNOWN  # by the launch that uses it next,
    gap: int = 0  # so many launches later; 0: not known, NEVER: it dies before
    forgotten: bool = False  # the execution was given up, or touches something else now


@dataclass(eq=False)
class UmBlock:
    slot: int
    index: int
    use_position: int = 0  # of its last use, or of the next one if it is expected
    again: int = 0  # launch that is expected to use it after that one
    used: int = 0  # launch that used it last,
    user: RunUse | None = None  # and what it does with it
    awaited: int = 0  # launch that will use it next; 0: none is known
    next_use: Use = Use.UNKNOWN  # by that one
    written_at: int = 0  # launch that wrote it last, or may have
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
    confirmed: int = 0
    resident: bool = False
    populated: bool = False
    faulted: bool = False
    written: bool = False
    host: bool = False  # the program wants it there
    remote: bool = False  # advised to stay there,
    dense: bool = False  # which was a mistake
    sparse_uses: int = 0  # in a row
    expected: bool = False  # on its memory's list of that name

    @property
    def stays_away(self) -> bool:
        return self.host or self.remote


@dataclass
class TorchBlock:
    born: int  # launches before it
    bytes: int
    ordinal: int
    key: int
    name: Name


@dataclass
class Allocation:
    generation: int
    device: int
    name: Name
    bytes: int
    born: int  # launches before it
    blocks: list[UmBlock]
    active: dict[int, TorchBlock] = field(default_factory=dict)
    reported: bool = False
    of_program: bool = False


@dataclass
class Memory:
    """A device's."""

    known: bool = False
    capacity: int = 0
    allocated: int = 0
    freed: deque[int] = field(default_factory=deque)  # evictions whose space is not taken yet
    awaited: dict[str, int] = field(default_factory=dict)  # by direction: prefetches to come wait for its moves up to here
    kept: list[UmBlock] = field(default_factory=list)  # resident, first to be evicted first
    copied: list[UmBlock] = field(default_factory=list)  # the same of what the host has as well
    to_copy: deque[tuple[UmBlock, int]] = field(default_factory=deque)  # to be copied out, and the launch that wrote it
    evictions: int = 0  # blocks, since that launch
    counted_from: int = 0
    copied_away: int = 0  # launch at which a block last left by a copy
    evicted_lately: int = 0  # in the iteration before it
    expected: dict[int, list[UmBlock]] = field(default_factory=dict)  # resident and expected by launches to come
    passed: int = 0  # launches that nothing is expected by any longer
    span: int = 2  # launches ahead of those
    fetched: int = 0  # blocks, for launches to come
    only_placed: bool = False  # what is expected is what was placed
    grown: int = 0  # blocks with new content since the latest launch, less those that died,
    died_away: int = 0  # of which so many were not here
    reserved: int = 0  # blocks needed besides what exists by the last launch placed,
    most_reserved: int = 0  # and by the one on the way there that needs most
    by_migration: bool = False  # the order; by last use otherwise
    migrations: int = 0
    used: int = 0
    mistakes: int = 0  # that narrowed the window
    withheld: int = 0  # of the capacity, from what may be expected
    full: bool = False  # the window held a launch off since the last one
    out_streams: int = 0  # that the latest eviction waits for
    mixed: int = 0  # launch at which evictions last waited for different streams
    held: dict[int, int] = field(default_factory=dict)  # by stream: the latest prefetch that a launch was held for

    def free(self) -> int:
        return max(0, self.capacity - self.used)

    def under_pressure(self) -> bool:
        return self.known and self.allocated > self.capacity

    def add(self, block: UmBlock) -> None:
        self.migrations += 1
        block.migrated = self.migrations
        block.resident = True
        block.again = 0
        self.place(block)

    def order(self, block: UmBlock) -> list[UmBlock]:
        return self.copied if block.copied else self.kept

    def place(self, block: UmBlock) -> None:
        """Into its list: at the end, or where its migration puts it."""
        if self.by_migration:
            bisect.insort(self.order(block), block, key=lambda other: other.migrated)
        else:
            self.order(block).append(block)

    def copy(self, block: UmBlock) -> None:
        """The host has what it has."""
        moves = block.resident and not block.expected and not block.copied
        if moves:
            self.kept.remove(block)
        block.copied = True
        if moves:
            self.place(block)

    def uncopy(self, block: UmBlock) -> None:
        """Not any longer."""
        moves = block.resident and not block.expected and block.copied
        if moves:
            self.copied.remove(block)
        block.copied = False
        if moves:
            self.place(block)

    def arrivals(self) -> list[UmBlock]:
        """Resident, in the order of their migration."""
        resident = [*self.kept, *self.copied, *(block for blocks in self.expected.values() for block in blocks)]
        return sorted(resident, key=lambda block: block.migrated)

    def renew(self, block: UmBlock) -> None:
        self.migrations += 1
        block.migrated = self.migrations
        if not block.expected and self.by_migration:
            self.order(block).remove(block)
            self.order(block).append(block)

    def take_out(self, block: UmBlock) -> None:
        if block.expected:
            self.expected[block.use_position].remove(block)
            if not self.expected[block.use_position]:
                del self.expected[block.use_position]
            self.settle_fetched(block)
        else:
            self.order(block).remove(block)
        block.expected = False

    def settle_fetched(self, block: UmBlock) -> None:
        self.fetched -= block.fetched
        block.fetched = False

    def keep(self, block: UmBlock, position: int) -> None:
        self.take_out(block)
        block.use_position = position
        self.place(block)

    def put_expected(self, block: UmBlock, position: int) -> None:
        self.take_out(block)
        block.use_position = min(max(position, self.passed + 1), self.passed + self.span - 1)
        block.expected = True
        self.expected.setdefault(block.use_position, []).append(block)

    def use(self, block: UmBlock, position: int) -> None:
        block.used_after = self.migrations
        if block.expected and block.use_position > position:
            self.settle_fetched(block)
        elif block.again > position:
            again, block.again = block.again, 0
            self.put_expected(block, again)
        elif not block.expected and self.by_migration:
            block.use_position = position
        else:
            self.keep(block, position)

    def expect(self, block: UmBlock, position: int) -> None:
        if not block.expected:
            block.again = 0
            self.put_expected(block, position)
        elif position < block.use_position:
            block.again = block.use_position
            self.put_expected(block, position)
        elif position > block.use_position and block.again == 0:
            block.again = position

    def drop(self, block: UmBlock) -> None:
        self.take_out(block)
        self.used -= 1
        block.resident = block.copied = False

    def beyond(self, position: int, most: int) -> list[UmBlock]:
        """Expected by launches beyond that one, the farthest first."""
        places = sorted((at for at in self.expected if at > position), reverse=True)
        return [block for at in places for block in self.expected[at]][:most]

    def ahead(self) -> int:
        return sum(map(len, self.expected.values())) if self.only_placed else self.fetched

    def reserved_blocks(self) -> int:
        return max(self.reserved, self.most_reserved, 0)

    def window(self) -> int:
        return self.capacity - min(self.withheld, self.capacity - self.capacity // 8)

    def narrow(self) -> None:
        self.mistakes += 1
        self.withheld = max(self.withheld, self.capacity - min(self.capacity, self.ahead())) + MISTAKE

    def expect_none_until(self, position: int) -> None:
        for at in sorted(self.expected):
            if at > position:
                break
            # What is expected again gets its next place only once all before it has gone.
            self.passed = max(self.passed, at - 1)
            for block in list(self.expected.get(at, ())):
                again, block.again = block.again, 0
                if again > position:
                    self.put_expected(block, again)
                else:
                    self.keep(block, block.use_position)
        self.passed = max(self.passed, position)

    def expect_nothing(self) -> None:
        while self.expected:
            block = self.beyond(0, 1)[0]
            block.again = 0
            self.keep(block, block.use_position)

    def take_space(self) -> int:
        self.used += 1
        unclaimed = max(0, self.capacity - self.used)
        if not self.freed or unclaimed >= len(self.freed):
            return 0
        return self.freed.popleft()
