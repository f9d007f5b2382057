"""Victims in plain Python: what native/core/placement decides and gives: policies, departures, pre-eviction, the driver's eviction."""

from __future__ import annotations

from abc import ABC, abstractmethod

from reference_block import Place, UmBlock
from reference_clean import Clean
from reference_commands import CORRELATION, HISTORY
from reference_memory import Memory

from deepum.core import CoreSettings

SHORT_QUEUE = 64  # launches
FETCHED_PART, LITTLE = 8, 32  # of the device, for what is fetched ahead: the latter where the launch queue holds an iteration
SPARED_PART = 16  # of the device, left to what comes into being
RESTED = 32  # blocks brought since a block's last use
EVICTION_BATCH = 8
KEPT_SHARE = 64  # part of the device that is kept of the dead
FAR = 8  # part of an iteration, after which what left comes back in time
VICTIM_SCAN, EXPECTED_SCAN = 4096, 256
SHORTEST_PAUSE, LONGEST_PAUSE = 64, 1 << 20  # launches without discards after one that was not carried out


class Victims(Clean, ABC):
    """Which blocks leave where there is no room."""

    def __init__(self, settings: CoreSettings) -> None:
        super().__init__(settings)
        self.placed = 0  # launches to come,
        self.promised = 0  # and those of them whose blocks stay
        self.fetching_ahead = False
        self.claim = 0
        self.used_streams = 0
        self.graphs = False
        self.mismatches = 0  # reports of PyTorch's that do not add up
        self.discards_refused = False
        self.discards_from = 0  # launch before which none is tried again
        self.discard_pause = 0  # launches

    def headroom(self, memory: Memory) -> int:
        return min(self.settings.headroom_blocks, memory.capacity // 8) if self.settings.pre_eviction else 0

    def may_take_room(self, memory: Memory, actual: bool) -> bool:
        modest = self.settings.prediction == HISTORY and self.settings.launch_queue >= SHORT_QUEUE
        reserved = memory.reserved_blocks()
        return actual or not (modest or reserved > 0) or memory.free() + len(memory.dead) > self.headroom(memory) + reserved

    def yield_room(self, memory: Memory, position: int, actual: bool) -> tuple[bool, UmBlock | None]:
        """The driver evicts for what is fetched."""
        if not self.may_take_room(memory, actual):
            return False, None
        if memory.free():
            return True, None
        for first in memory.arrivals():
            if first.claim != self.claim:
                memory.room.leave()
                memory.drop(first)
                if not first.populated:
                    return True, None
                first.evicted_for = position
                self.note_streams(memory, first)
                return True, first
            memory.renew(first)
            self.command("prefetch", first, 0, 0, first.moved_out)
        return False, None

    def make_room(self, memory: Memory, position: int, actual: bool, fetches: bool) -> bool:
        headroom = self.headroom(memory)
        if self.fetching_ahead:
            return self.spare_room(memory, position)
        if not self.may_take_room(memory, actual):
            return False
        if memory.by_next_use and memory.free() > headroom and memory.only_freed() and not (fetches and self.keeps_dead(memory)):
            self.discard_dead(memory, position)
        if memory.free() <= headroom:
            # By next use all that the launch misses, at once, and in the order of last use.
            batch = max(EVICTION_BATCH, memory.wanted) if memory.by_next_use and actual else EVICTION_BATCH
            leaving: list[tuple[UmBlock, bool]] = []
            while memory.free() < batch + headroom:
                victim = self.victim(memory, position, False, dead=False) if fetches and self.keeps_dead(memory) else None
                if victim is None:
                    victim = self.victim(memory, position, actual and memory.free() == 0, dead=True)
                if victim is None:
                    break
                self.draw_back(victim)
                leaving.append((victim, victim.copied))
                memory.drop(victim)
            if memory.by_next_use and any(not block.dead and not copied for block, copied in leaving):
                memory.demanded = self.position
            self.leave_in_order(memory, leaving, position)
        return memory.free() > (0 if actual else headroom)

    def leave_in_order(self, memory: Memory, leaving: list[tuple[UmBlock, bool]], position: int) -> None:
        """By next use in that of last use, since what was used last would hold up the others."""
        if memory.by_next_use:
            leaving.sort(key=lambda one: (not one[0].dead, one[0].use_sequence))
        for block, copied in leaving:
            self.let_go(memory, block, copied, position)

    def keeps_dead(self, memory: Memory) -> bool:
        """For content that comes soon, which needs no link; what is fetched takes other space."""
        if not memory.by_next_use or self.settings.prediction != HISTORY or not memory.dead:
            return False
        if memory.foreseen_at != self.position:
            memory.foreseen_at, memory.soon = self.position, self.new_content_soon(memory.ordinal)
        return len(memory.dead) <= min(memory.soon, memory.capacity // KEPT_SHARE)

    @abstractmethod
    def new_content_soon(self, device: int) -> int:
        """The most on the way, in blocks. The chain knows."""

    @abstractmethod
    def growth_ahead(self, memory: Memory) -> tuple[int, int]:
        """Likewise, through all launches to come that are placed, and by the last of them since there was the least."""

    def spare_room(self, memory: Memory, position: int) -> bool:
        """What is free or dead, and not needed by what comes into being on the way there."""
        headroom, spared = self.headroom(memory), memory.capacity // SPARED_PART
        growth, rise = self.growth_ahead(memory)
        share = FETCHED_PART if self.iteration > memory.launch_queue else LITTLE
        if memory.fetched > memory.capacity // share or rise > spared:
            return False
        if memory.free() + len(memory.dead) <= headroom + growth + spared:
            return False
        if memory.free() <= headroom:
            self.discard_dead(memory, position)
        return memory.free() > headroom

    def discard_dead(self, memory: Memory, position: int) -> None:
        for block in [block for block in memory.dead if block.claim != self.claim][:EVICTION_BATCH]:
            self.evict(memory, block, position)

    def drops_dead(self) -> bool:
        return bool(self.settings.invalidation) and not self.discards_refused

    def draw_back(self, victim: UmBlock) -> None:
        if victim.place is Place.EXPECTED and victim.use_position > self.position:
            self.placed = max(self.promised, min(self.placed, victim.use_position - self.position - 1))

    def evict_surplus(self, memory: Memory) -> None:
        while memory.used > memory.capacity and self.settings.pre_eviction:
            if (victim := self.victim(memory, self.position, False, True)) is None:
                return
            self.draw_back(victim)
            self.evict(memory, victim, self.position)

    def discardable(self, block: UmBlock) -> bool:
        told = not self.graphs and not self.mismatches and not self.allocations[block.slot].of_program
        decides = self.drops_dead() and self.settings.policy == CORRELATION and self.position >= self.discards_from
        return block.dead and decides and told and self.memory_of(block).under_pressure()

    def stop_discarding(self) -> None:
        self.discards_refused = True
        for memory in self.devices.values():
            for block in list(memory.dead):
                memory.put(block, Place.KEPT, block.use_position)

    def pause_discarding(self) -> None:
        """Twice as long as before where discards failed soon after the last pause."""
        if self.position < self.discards_from:
            return
        in_a_row = 0 < self.discard_pause > self.position - self.discards_from
        self.discard_pause = min(2 * self.discard_pause, LONGEST_PAUSE) if in_a_row else SHORTEST_PAUSE
        self.discards_from = self.position + self.discard_pause

    def discard(self, block: UmBlock) -> None:
        """Behind all that was launched when it died, and behind its moves."""
        after = max(block.died, block.use_sequence)
        self.command("discard", block, after, self.used_streams, max(block.moved_in, block.moved_out))
        block.populated = False

    def victim(self, memory: Memory, position: int, anything: bool, dead: bool) -> UmBlock | None:
        memory.wake(self.position, self.iteration)
        for block in memory.dead if dead else ():
            if block.claim != self.claim:
                return block
        kept = self.unclaimed(memory)
        if memory.by_next_use:
            return self.needed_last(memory, position, kept, anything)
        if kept is not None:
            return kept
        for block in memory.expected.beyond(max(position, self.position + self.promised))[:EXPECTED_SCAN]:
            if block.claim != self.claim and not block.fetched and memory.migrations - block.used_after >= RESTED:
                return block
        if anything:
            for block in memory.expected.beyond(0)[:VICTIM_SCAN]:
                if block.claim != self.claim:
                    memory.narrow()
                    return block
        return None

    def unclaimed(self, memory: Memory) -> UmBlock | None:
        """What is not expected, the first in order."""
        copied, kept = ([block for block in blocks[:VICTIM_SCAN] if block.claim != self.claim] for blocks in (memory.copied, memory.kept))
        first = copied[:1] + kept[:1]
        return min(reversed(first), key=lambda block: block.migrated if memory.by_migration else block.use_position, default=None)

    def needed_last(self, memory: Memory, position: int, kept: UmBlock | None, anything: bool) -> UmBlock | None:
        """By next use: the farthest that no launch placed needs, or `kept`, whose next use is unknown, if it was used before that; else,
        for the launch at hand, what rests, or is expected by whomever."""

        def farthest(beyond: int, most: int, also_fetched: bool) -> UmBlock | None:
            moved, dropped = (
                [block for block in expected.beyond(beyond)[:most] if block.claim != self.claim and (also_fetched or not block.fetched)]
                for expected in (memory.expected, memory.expected_copied)
            )
            comes_back = bool(dropped) and dropped[0].use_position - self.position >= self.iteration // FAR
            return next(iter((dropped or moved) if comes_back else (moved or dropped)), None)

        victim = farthest(max(position, self.position + self.promised), EXPECTED_SCAN, also_fetched=False)
        if victim is None or (kept is not None and not victim.copied and kept.used <= victim.used):
            victim = kept
        if victim is not None or not anything:
            return victim
        resting = [block for block in memory.resting if block.claim != self.claim]
        if resting:
            return resting[0]
        victim = farthest(0, VICTIM_SCAN, also_fetched=True)
        if victim is not None:
            memory.narrow()
        return victim

    def evict(self, memory: Memory, block: UmBlock, position: int) -> None:
        copied = block.copied
        memory.drop(block)
        self.let_go(memory, block, copied, position)

    def let_go(self, memory: Memory, block: UmBlock, copied: bool, position: int) -> None:
        """What was dropped leaves the device."""
        memory.room.leave()
        if not block.populated:
            return
        if not block.dead:
            block.left = True
            block.evicted_for = position
        if self.discardable(block):
            self.discard(block)
            memory.emptied.append((block.discarded, max(block.died, block.use_sequence)))
            return
        self.note_streams(memory, block)
        memory.evictions += 1
        self.leave(block, copied)
        memory.freed.append((block.moved_out, block.use_sequence))

    def note_streams(self, memory: Memory, victim: UmBlock) -> None:
        if victim.use_sequence and victim.streams:
            several = victim.streams & (victim.streams - 1) != 0
            if memory.out_streams and (memory.out_streams != victim.streams or several):
                memory.mixed = self.position
            memory.out_streams = victim.streams
