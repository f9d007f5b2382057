"""The orders in which blocks leave: by recency, and by next use (Belady)."""

from __future__ import annotations

from reference.clock import Clock
from reference.memory.residency import ResidencyBelief
from reference.memory.um_block import Place, UmBlock, Use
from reference.placement.eviction_policy import (
    EVICTABLE,
    EXPECTED_SCAN,
    VICTIM_SCAN,
    EvictionPolicy,
    Victim,
    VictimQuery,
)

COOL_DOWN_BLOCKS = 32  # that were brought since a block's last use
FARTHEST, TURN = 1 << 16, 8  # launches up to which next uses are told apart, by so many
# That a block cools down for: launches, and blocks brought; on small cards less;
LEAST_LAUNCHES, LEAST_BLOCKS = 2, 32
MANY_LAUNCHES, BLOCKS_SHARE = 32, 16  # and so many launches, or that part of the device in blocks
DYING = 16  # what ends by itself leaves as if it were needed so many times later
LAST_SHARE = 128  # part of a device, of which any block may leave first
FAR = 8  # part of an iteration, after which what left without a copy comes back in time


class RecencyPolicy(EvictionPolicy):
    """What launches to come are expected to use leaves after all others, the block that is needed
    last first.
    """

    def __init__(
        self, now: Clock, residency: ResidencyBelief, by_migration: bool, prefetch_degree: int
    ) -> None:
        super().__init__(now, residency, prefetch_degree, 1)
        self.by_migration = by_migration

    def apply_use(self, block: UmBlock) -> None:
        launch = self.now.launch
        block.migrations_at_use = self.residency.migrations
        if block.place is Place.EXPECTED and block.order_launch > launch:
            self.clear_prefetched(block)
        elif block.afterwards > launch:
            afterwards, block.afterwards = block.afterwards, 0
            self.put(block, Place.EXPECTED, afterwards)
        elif block.place in EVICTABLE and self.by_migration:
            block.order_launch = launch
        else:
            self.put(block, Place.EVICTABLE, launch)

    def prediction_failed(self) -> None:
        while blocks := self.expected_blocks[Place.EXPECTED].beyond(-1):
            blocks[0].afterwards = 0
            self.put(blocks[0], Place.EVICTABLE, blocks[0].order_launch)

    def choose(self, query: VictimQuery) -> Victim:
        if (block := self.first_evictable(query)) is not None:
            return block, False
        expected = self.expected_blocks[Place.EXPECTED]
        for block in expected.beyond(max(query.launch, query.promised_until))[:EXPECTED_SCAN]:
            cooled_down = self.residency.migrations - block.migrations_at_use >= COOL_DOWN_BLOCKS
            if query.allows(block) and not block.prefetched and cooled_down:
                return block, False
        if query.last_resort:
            for block in expected.beyond(0)[:VICTIM_SCAN]:
                if query.allows(block):
                    return block, True
        return None, False


class NextUsePolicy(EvictionPolicy):
    """A block that was used just now cools down before its next use counts, so that its space comes
    in time.
    """

    splits_expected = True

    def __init__(self, now: Clock, residency: ResidencyBelief, launch_queue: int) -> None:
        super().__init__(now, residency, FARTHEST // TURN, TURN)
        self.launch_queue = launch_queue
        self.woken = 0  # blocks that have cooled down, of late,
        self.foreseen = 0  # of which the next use was known
        self.evicted_until = 0  # the latest use of what was chosen to leave by a copy

    def cool_down(self, block: UmBlock) -> None:
        block.migrations_at_use = self.residency.migrations
        self.put(block, Place.COOLING_DOWN, self.now.launch)

    def apply_use(self, block: UmBlock) -> None:
        launch = self.now.launch
        expected_by = self.expected_by(block)
        foreseen = expected_by if expected_by > launch else block.afterwards
        self.cool_down(block)
        block.afterwards = foreseen if foreseen > launch else 0

    def apply_prospect(self, block: UmBlock) -> None:
        self.cool_down(block)

    def missed(self, block: UmBlock) -> bool:
        """A use that had been learned: then the chain's is a later iteration's."""
        return 0 < block.next_launch <= self.now.launch

    def apply_expectation(self, block: UmBlock, by: int) -> None:
        if block.place is Place.COOLING_DOWN:
            block.afterwards = (
                by if block.afterwards <= self.now.launch else min(block.afterwards, by)
            )
        else:
            super().apply_expectation(block, by)

    def apply_distant_expectation(self, block: UmBlock, by: int) -> None:
        if block.place not in EVICTABLE or not self.missed(block):
            self.apply_expectation(block, by)

    def settle(self) -> None:
        cooling_down = self.lists[Place.COOLING_DOWN]
        while cooling_down and self.cooled_down(cooling_down[0]):
            self.wake(cooling_down[0])

    def cooled_down(self, block: UmBlock) -> bool:
        launches, brought = (
            self.now.launch - block.order_launch,
            self.residency.migrations - block.migrations_at_use,
        )
        share = self.residency.capacity // BLOCKS_SHARE
        enough = launches >= min(
            LEAST_LAUNCHES, self.now.iteration // BLOCKS_SHARE
        ) and brought >= min(LEAST_BLOCKS, share)
        return launches > self.launch_queue or (
            enough and (launches >= MANY_LAUNCHES or brought >= share)
        )

    def wake(self, block: UmBlock) -> None:
        """It is expected by its next use, or by none. What was learned counts only where next uses
        are mostly known.
        """
        launch = self.now.launch
        learned = block.next_launch
        if block.next_use is Use.DIES:
            learned = block.last_launch + DYING * (block.next_launch - block.last_launch)
        learned = learned if block.next_launch > launch else 0
        predicted = block.afterwards if block.afterwards > launch and not self.missed(block) else 0
        self.woken += 1
        self.foreseen += learned > 0 or predicted > 0
        if self.woken >= 2 * self.residency.capacity:
            self.woken //= 2
            self.foreseen //= 2
        if 2 * self.foreseen < self.woken:
            learned = 0
        first, *later = sorted({learned, predicted} - {0}) or [0]
        block.afterwards = later[0] if later else 0
        self.put(block, Place.EXPECTED if first else Place.EVICTABLE, first or block.order_launch)

    def choose(self, query: VictimQuery) -> Victim:
        """As found, and remembered."""
        victim, mistake = self.find(query)
        if victim is not None and not victim.clean:
            self.evicted_until = max(self.evicted_until, victim.last_launch)
        return victim, mistake

    def find(self, query: VictimQuery) -> Victim:
        """The farthest that no launch placed needs, or the first of those whose next use is
        unknown, if it was used before that; else, for the launch at hand, what cools down, or is
        expected by whomever.
        """
        victim = self.farthest(
            query, max(query.launch, query.promised_until), EXPECTED_SCAN, also_prefetched=False
        )
        if (
            victim is not None
            and not victim.clean
            and victim.last_launch > self.evicted_until
            and self.now.launch - victim.last_launch <= self.launch_queue
        ):
            victim = self.earliest_of_last(victim, query)
        unknown = self.first_evictable(query)
        if victim is None or (
            unknown is not None and not victim.clean and unknown.last_launch <= victim.last_launch
        ):
            victim = unknown
        if victim is not None or not query.last_resort:
            return victim, False
        if (oldest := next(filter(query.allows, self.lists[Place.COOLING_DOWN]), None)) is not None:
            return oldest, False
        victim = self.farthest(query, 0, VICTIM_SCAN, also_prefetched=True)
        return victim, victim is not None

    def earliest_of_last(self, victim: UmBlock, query: VictimQuery) -> UmBlock:
        """Evictions go in order, and the victim's would hold up those behind it: of those that are
        needed about as late the first that holds up nothing, or what was used longest ago.
        """
        beyond = max(query.launch, query.promised_until)
        last = self.expected_blocks[Place.EXPECTED].beyond(beyond)
        free = [
            block
            for block in last[: self.residency.capacity // LAST_SHARE]
            if query.allows(block) and not block.prefetched
        ]
        in_time = (block for block in free if block.last_launch <= self.evicted_until)
        return next(in_time, min([victim, *free], key=lambda block: block.last_launch))

    def farthest(
        self, query: VictimQuery, beyond: int, most: int, also_prefetched: bool
    ) -> UmBlock | None:
        """What leaves without a copy before all else, if it has the time to come back."""
        dirty, clean = (
            [
                block
                for block in expected.beyond(beyond)[:most]
                if query.allows(block) and (also_prefetched or not block.prefetched)
            ]
            for expected in self.expected_blocks.values()
        )
        comes_back = (
            bool(clean) and clean[0].order_launch - self.now.launch >= self.now.iteration // FAR
        )
        return next(iter((clean or dirty) if comes_back else (dirty or clean)), None)
