"""Which block leaves a device when room is needed: what the orders by recency and by next use
share.
"""

from __future__ import annotations

import bisect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from reference.clock import Clock
from reference.memory.residency import ResidencyBelief
from reference.memory.um_block import Place, UmBlock, Use

# Blocks looked at for one victim, of those expected, and for one needed late.
VICTIM_SCAN, EXPECTED_SCAN, LATE_SCAN = 4096, 256, 4096
EVICTABLE, EXPECTED = (
    (Place.EVICTABLE, Place.EVICTABLE_CLEAN),
    (Place.EXPECTED, Place.EXPECTED_CLEAN),
)


class ExpectedBlocks:
    """By turns of so many launches, the first of a turn first."""

    def __init__(self, turns: int, launches: int) -> None:
        # Turns that are told apart: two more, and a power of two.
        self.span = 1 << (turns + 1).bit_length()
        self.launches = launches  # of a turn
        self.turns: dict[int, list[UmBlock]] = {}
        self.passed = 0  # turns that nothing is expected in any longer

    def add(self, block: UmBlock) -> None:
        """For launch `block.order_launch`, which is brought into the span."""
        wanted = block.order_launch // self.launches
        turn = min(max(wanted, self.passed + 1), self.passed + self.span - 1)
        if turn != wanted:
            block.order_launch = turn * self.launches
        self.turns.setdefault(turn, []).append(block)

    def remove(self, block: UmBlock) -> None:
        turn = block.order_launch // self.launches
        self.turns[turn].remove(block)
        if not self.turns[turn]:
            del self.turns[turn]

    def overdue(self, launch: int) -> Iterator[UmBlock]:
        """Those of the turns that end with that launch or before, each of which has to be put
        elsewhere; then these turns have passed.
        """
        last = (launch + 1) // self.launches - 1
        for turn in sorted(self.turns):
            if turn > last:
                break
            # What is expected again gets its next place only once all before it has gone.
            self.passed = max(self.passed, turn - 1)
            yield from list(self.turns.get(turn, ()))
        self.passed = max(self.passed, last)

    def beyond(self, launch: int) -> list[UmBlock]:
        """By launches of turns beyond that of this one, the farthest first."""
        turns = sorted(
            (turn for turn in self.turns if turn > launch // self.launches), reverse=True
        )
        return [block for turn in turns for block in self.turns[turn]]

    def __len__(self) -> int:
        return sum(map(len, self.turns.values()))


class VictimQuery(NamedTuple):
    launch: int  # that wants the space
    promised_until: int  # launches up to there count on what is resident
    claim: int  # blocks with this claim are the placement's own
    last_resort: bool  # a launch at hand has nowhere else to go
    dead_may_leave: bool = True

    def allows(self, block: UmBlock) -> bool:
        return block.claim != self.claim


# True: an earlier launch needs it, so that too much was fetched ahead.
Victim = tuple[UmBlock | None, bool]


class EvictionPolicy(ABC):
    """Of one device. It hears what happens to the resident blocks."""

    by_migration = False  # the evictable blocks are in the order of their migration
    splits_expected = False  # expected blocks that the host has as well are kept apart

    def __init__(self, now: Clock, residency: ResidencyBelief, turns: int, launches: int) -> None:
        """Expected blocks are told apart up to so many turns of so many launches."""
        self.now, self.residency = now, residency
        self.lists: dict[Place, list[UmBlock]] = {
            place: [] for place in (*EVICTABLE, Place.COOLING_DOWN, Place.DEAD, Place.PINNED)
        }
        self.expected_blocks = {place: ExpectedBlocks(turns, launches) for place in EXPECTED}
        self.prefetched = 0  # blocks, for launches to come, that were not used since

    @property
    def dead(self) -> list[UmBlock]:
        """The first to die first."""
        return self.lists[Place.DEAD]

    # Lists.

    def refined(self, block: UmBlock, place: Place) -> Place:
        """The place in that one's stead, according to what the host has."""
        if not block.clean:
            return place
        if place is Place.EXPECTED and self.splits_expected:
            return Place.EXPECTED_CLEAN
        return Place.EVICTABLE_CLEAN if place is Place.EVICTABLE else place

    def enlist(self, block: UmBlock, place: Place) -> None:
        """At the end of a list, or where its migration puts it."""
        block.place = place = self.refined(block, place)
        if place in self.expected_blocks:
            self.expected_blocks[place].add(block)
        elif place in EVICTABLE and self.by_migration:
            bisect.insort(self.lists[place], block, key=lambda other: other.migrated)
        else:
            self.lists[place].append(block)

    def take_out(self, block: UmBlock) -> None:
        place = block.place
        if place in self.expected_blocks:
            self.expected_blocks[place].remove(block)
            self.clear_prefetched(block)
        else:
            self.lists[place].remove(block)

    def put(self, block: UmBlock, place: Place, launch: int) -> None:
        """`launch` is that of its last use, or of the next one where it is expected."""
        self.take_out(block)
        block.order_launch = launch
        self.enlist(block, place)

    def clear_prefetched(self, block: UmBlock) -> None:
        self.prefetched -= block.prefetched
        block.prefetched = False

    def mark_prefetched(self, block: UmBlock) -> None:
        """It was fetched for a launch to come, which is expected to use it."""
        if block.place is Place.PINNED:
            return
        block.migrations_at_use = self.residency.migrations
        self.prefetched += 1
        block.prefetched = True

    def expected_by(self, block: UmBlock) -> int:
        """The launch that is expected to use it next; 0: none is."""
        return block.order_launch if block.place in EXPECTED else 0

    # What happens to blocks.

    def arrived(self, block: UmBlock) -> None:
        block.afterwards = 0
        self.enlist(block, self.at_first(block))

    @staticmethod
    def at_first(block: UmBlock) -> Place:
        return Place.PINNED if block.pinned else Place.EVICTABLE

    def pin(self, block: UmBlock, pinned: bool) -> None:
        """The program prefers it on the device: it leaves where nothing else is left."""
        changes, block.pinned = block.pinned is not pinned, pinned
        if changes and block.resident and block.place is not Place.DEAD:
            self.clear_prefetched(block)
            self.put(block, self.at_first(block), block.order_launch)

    def departed(self, block: UmBlock) -> None:
        self.take_out(block)
        block.place = Place.EVICTABLE

    def clean_changed(self, block: UmBlock) -> None:
        evictable = block.place in EVICTABLE
        if not evictable and block.place not in EXPECTED:
            return
        place = Place.EVICTABLE if evictable else Place.EXPECTED
        if self.refined(block, place) is not block.place:
            prefetched = block.prefetched  # what it was prefetched for stands
            self.put(block, place, block.order_launch)
            self.prefetched += prefetched
            block.prefetched = prefetched

    def renewed(self, block: UmBlock) -> None:
        """It was asked for again where it is: by its migration it is the last to leave."""
        if block.place in EVICTABLE and self.by_migration:
            self.put(block, Place.EVICTABLE, block.order_launch)

    def content_died(self, block: UmBlock, drops: bool) -> None:
        """`drops`: dead blocks leave first; they are victims like others otherwise."""
        self.pin(block, False)
        block.afterwards = 0
        if drops:
            self.put(block, Place.DEAD, block.order_launch)
        elif block.place in EXPECTED:
            self.put(block, Place.EVICTABLE, block.order_launch)

    def keep_dead(self) -> None:
        """Dead blocks are victims like all others from now on."""
        for block in list(self.dead):
            self.put(block, self.at_first(block), block.order_launch)

    def used(self, block: UmBlock) -> None:
        """By the launch at hand."""
        if block.place is not Place.PINNED:
            self.apply_use(block)

    def will_be_used(self, block: UmBlock) -> None:
        """The program brought it, or handed it out."""
        if block.place is not Place.PINNED:
            self.apply_prospect(block)

    def expected(self, block: UmBlock, by: int) -> None:
        """A launch to come is expected to use it."""
        if block.place is not Place.PINNED:
            self.apply_expectation(block, by)

    def expected_one_day(self, block: UmBlock, by: int) -> None:
        """The same for a launch that is not placed yet, and may be iterations away."""
        if block.place is not Place.PINNED:
            self.apply_distant_expectation(block, by)

    @abstractmethod
    def apply_use(self, block: UmBlock) -> None: ...

    def apply_prospect(self, block: UmBlock) -> None:
        if block.place is Place.DEAD:
            self.put(block, self.at_first(block), block.order_launch)

    def apply_expectation(self, block: UmBlock, by: int) -> None:
        if block.place not in EXPECTED:
            block.afterwards = 0
            self.put(block, Place.EXPECTED, by)
        elif by < block.order_launch:
            block.afterwards = block.order_launch
            self.put(block, Place.EXPECTED, by)
        elif by > block.order_launch and block.afterwards == 0:
            block.afterwards = by

    def apply_distant_expectation(self, block: UmBlock, by: int) -> None:
        self.apply_expectation(block, by)

    def launch_passed(self) -> None:
        """What those launches did not use is expected by the next that needs it, or by none."""
        for expected in self.expected_blocks.values():
            for block in expected.overdue(self.now.launch):
                afterwards, block.afterwards = block.afterwards, 0
                if afterwards > self.now.launch:
                    self.put(block, Place.EXPECTED, afterwards)
                else:
                    self.put(block, Place.EVICTABLE, block.order_launch)

    def prediction_failed(self) -> None:
        """No launch of the chain is expected any longer."""
        return

    # Victims.

    def settle(self) -> None:
        """Called before a victim is chosen."""
        return

    def victim(self, query: VictimQuery) -> Victim:
        self.settle()
        dead = next(filter(query.allows, self.dead), None) if query.dead_may_leave else None
        if dead is not None:
            return dead, False
        found = self.choose(query)
        if found[0] is None and query.last_resort:
            return next(filter(query.allows, self.lists[Place.PINNED]), None), False
        return found

    @abstractmethod
    def choose(self, query: VictimQuery) -> Victim:
        """Of the living blocks."""

    def first(self) -> UmBlock | None:
        """The block that leaves first of all living ones, whatever is expected."""
        return next(iter(self.lists[Place.EVICTABLE]), None)

    def first_evictable(self, query: VictimQuery) -> UmBlock | None:
        """The first in order that no launch is known to need."""
        dirty, clean = (
            list(filter(query.allows, self.lists[place][:VICTIM_SCAN]))[:1] for place in EVICTABLE
        )
        return min(
            dirty + clean,
            key=lambda block: block.migrated if self.by_migration else block.order_launch,
            default=None,
        )

    def needed_after(self, launch: int, known_until: int) -> UmBlock | None:
        """The block that is needed last of those that are needed only after that launch, and by a
        launch up to `known_until` where none is expected yet. Not what ends by itself.
        """

        def lives_on(block: UmBlock) -> bool:
            return block.next_use is not Use.DIES or block.next_launch <= self.now.launch

        def late_enough(block: UmBlock) -> bool:
            return block.next_use is not Use.DIES and launch < block.next_launch <= known_until

        expected = (
            filter(lives_on, blocks.beyond(launch)[:LATE_SCAN])
            for blocks in self.expected_blocks.values()
        )
        others = (Place.EVICTABLE_CLEAN, Place.EVICTABLE, Place.COOLING_DOWN)
        waiting = (filter(late_enough, self.lists[place][:LATE_SCAN]) for place in others)
        found: list[Iterable[UmBlock]] = [*expected, *waiting]
        return next((block for blocks in found for block in blocks), None)

    def expected_after(self, launch: int) -> list[UmBlock]:
        """The dirty blocks that launches after that one expect, the farthest first."""
        self.settle()
        return self.expected_blocks[Place.EXPECTED].beyond(launch)[:EXPECTED_SCAN]
