"""Prefetches, evictions and holds in plain Python: what native/core/placement.cpp does."""

from __future__ import annotations

from reference_clean import Clean
from reference_commands import CLEAN_FIRST, HISTORY
from reference_history import Execution
from reference_memory import Memory, Span, UmBlock, Use
from reference_uses import CORRELATION, Argument

from deepum.core import Command, CoreSettings

LEAST_DOUBT = 16  # launches for which what is known to be there is not doubted
LONG_PAST = 4096  # launches
SHORT_QUEUE = 64  # launches
RESTED = 32  # blocks brought since a block's last use
EVICTION_BATCH = 8
FAR = 16  # part of an iteration, after which what left comes back in time
VICTIM_SCAN, EXPECTED_SCAN = 4096, 256


class Placement(Clean):
    """Makes access sets resident, on the belief that holds when all commands given so far are carried out."""

    def __init__(self, settings: CoreSettings) -> None:
        super().__init__(settings)
        self.placed = 0  # launches to come
        self.claim = 0
        self.doubt_after = 0

    def doubt(self, execution: Execution) -> int:
        """Launches after which its blocks are doubted."""
        if not execution.period:
            return self.settings.confidence_launches
        return min(self.settings.confidence_launches, max(execution.period - execution.period // 8, LEAST_DOUBT))

    def locate(self, execution: Execution, distance: int) -> list[tuple[Span, Use]]:
        spans: list[tuple[Span, Use]] = []
        for run, age in execution.runs.items():
            name, first, count = run
            # Handed out within the distance: what bears its name now is another.
            if name in self.bound and age >= distance:
                slot, origin = self.bound[name]
                most = len(self.allocations[slot].blocks) - origin - first
                if most > 0:
                    spans.append(((slot, origin + first, min(count, most)), execution.uses[run].now))
        return spans

    def place(self, spans: list[tuple[Span, Use]], position: int, actual: bool) -> bool:
        self.claim += 1
        blocks = [(block, use) for span, use in spans for block in self.blocks(span)]
        for block, _ in blocks:
            if not block.resident:
                continue
            memory = self.memory_of(block)
            self.use(memory, block, position, actual)
            doubtful = self.position - block.confirmed > self.doubt_after
            if self.settings.policy == CORRELATION and memory.under_pressure() and doubtful:
                self.command("prefetch", block, 0, 0, block.moved_out)
                block.confirmed = self.position
                if not self.settings.pre_eviction:
                    memory.renew(block)
        return all(block.resident or block.stays_away or self.bring(block, use, position, actual) for block, use in blocks)

    def use(self, memory: Memory, block: UmBlock, position: int, actual: bool) -> None:
        block.claim = self.claim
        if actual:
            memory.use(block, position)
        else:
            memory.expect(block, position)

    def hold(self, arguments: list[Argument], stream: int) -> None:
        if self.settings.policy != CORRELATION:
            return
        until: dict[int, int] = {}
        for argument in arguments:
            device = self.allocations[argument.span[0]].device
            for block in self.blocks(argument.span):
                until[device] = max(until.get(device, 0), block.brought)
        for device, move in sorted(until.items()):
            memory = self.memory(device)
            mixed = memory.out_streams != 1 << stream or (memory.mixed and self.position - memory.mixed <= LONG_PAST)
            if move <= memory.held.get(stream, 0) or (memory.out_streams and mixed):
                continue
            memory.held[stream] = move
            made = Command(len(self.commands) + 1, self.sequence, 0, 1 << stream, move, 0, 0, 0, 0, "hold", 0, device, 0)
            self.commands.append(made)

    def bring(self, block: UmBlock, use: Use, position: int, actual: bool) -> bool:
        memory = self.memory_of(block)
        decide = self.settings.policy == CORRELATION and memory.under_pressure()
        if decide and not actual and memory.ahead() >= memory.window():
            memory.full = True
            return False
        outgoing = None
        if decide and self.settings.pre_eviction and not self.make_room(memory, position, actual):
            return actual
        if decide and not self.settings.pre_eviction:
            room, outgoing = self.yield_room(memory, position, actual)
            if not room:
                return actual
        if not decide and memory.known and not memory.free() and memory.kept:
            memory.drop(memory.kept[0])
        if decide and block.evicted_for > position:
            memory.narrow()
        block.evicted_for = 0
        memory.grown += block.fresh
        block.filled = self.position if block.fresh else block.filled
        block.fresh = False
        if decide:
            self.prepare_duplicate(block, use)
        space = memory.take_space()
        memory.add(block)
        block.used_after = memory.migrations
        self.use(memory, block, position, actual)
        block.fetched = not actual
        memory.fetched += not actual
        block.confirmed, block.streams = self.position, 0
        if decide:
            if self.direction(space) != self.direction(block.moved_out):
                self.await_move(memory, self.allocations[block.slot].device, min(space, block.moved_out))
            after, streams = (outgoing.use_sequence, outgoing.streams) if outgoing is not None else (0, 0)
            self.command("prefetch", block, after, streams, max(space, block.moved_out))
            block.brought = block.moved_in
            block.populated = True
        return True

    def headroom(self, memory: Memory) -> int:
        return min(self.settings.headroom_blocks, memory.capacity // 8) if self.settings.pre_eviction else 0

    def may_take_room(self, memory: Memory, actual: bool) -> bool:
        modest = self.settings.prediction == HISTORY and self.settings.launch_queue >= SHORT_QUEUE
        reserved = memory.reserved_blocks()
        return actual or not (modest or reserved > 0) or memory.free() > self.headroom(memory) + reserved

    def yield_room(self, memory: Memory, position: int, actual: bool) -> tuple[bool, UmBlock | None]:
        """The driver evicts for what is fetched."""
        if not self.may_take_room(memory, actual):
            return False, None
        if memory.free():
            return True, None
        for first in memory.arrivals():
            if first.claim != self.claim:
                memory.drop(first)
                if not first.populated:
                    return True, None
                first.evicted_for = position
                self.note_streams(memory, first)
                return True, first
            memory.renew(first)
            self.command("prefetch", first, 0, 0, first.moved_out)
        return False, None

    def make_room(self, memory: Memory, position: int, actual: bool) -> bool:
        headroom = self.headroom(memory)
        if not self.may_take_room(memory, actual):
            return False
        if memory.free() <= headroom:
            i = 0
            while i < EVICTION_BATCH + headroom - min(headroom, memory.free()):
                victim = self.victim(memory, position, actual and memory.free() == 0)
                if victim is None:
                    break
                self.evict(memory, victim, position)
                i += 1
        return memory.free() > (0 if actual else headroom)

    def victim(self, memory: Memory, position: int, anything: bool) -> UmBlock | None:
        unclaimed = self.unclaimed(memory)
        if unclaimed is not None:
            return unclaimed
        for block in memory.beyond(max(position, self.position + self.placed), EXPECTED_SCAN):
            if block.claim != self.claim and not block.fetched and memory.migrations - block.used_after >= RESTED:
                return block
        if anything:
            for block in memory.beyond(0, VICTIM_SCAN):
                if block.claim != self.claim:
                    memory.narrow()
                    return block
        return None

    def unclaimed(self, memory: Memory) -> UmBlock | None:
        """What is not expected, the first in order; where clean goes first, clean blocks that are not needed soon before others."""
        copied, kept = ([block for block in blocks[:VICTIM_SCAN] if block.claim != self.claim] for blocks in (memory.copied, memory.kept))
        soon = self.position + self.iteration // FAR
        far = [block for block in copied if block.awaited == 0 or block.awaited > soon]
        if far and self.settings.eviction_order == CLEAN_FIRST:
            return far[0]
        first = copied[:1] + kept[:1]
        return min(reversed(first), key=lambda block: block.migrated if memory.by_migration else block.use_position, default=None)

    def evict(self, memory: Memory, block: UmBlock, position: int) -> None:
        copied = block.copied
        memory.drop(block)
        if not block.populated:
            return
        if not block.dead:
            block.evicted_for = position
        self.note_streams(memory, block)
        memory.evictions += 1
        self.leave(block, copied)
        memory.freed.append(block.moved_out)

    def note_streams(self, memory: Memory, victim: UmBlock) -> None:
        if victim.use_sequence and victim.streams:
            several = victim.streams & (victim.streams - 1) != 0
            if memory.out_streams and (memory.out_streams != victim.streams or several):
                memory.mixed = self.position
            memory.out_streams = victim.streams
