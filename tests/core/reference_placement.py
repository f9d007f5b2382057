"""Prefetches, evictions and holds in plain Python: what native/core/placement.cpp does."""

from __future__ import annotations

from dataclasses import replace

from reference_history import Execution
from reference_memory import Allocation, Memory, Name, Run, Span, UmBlock

from deepum.core import Command, CoreSettings

CORRELATION = 1
LEAST_RECENTLY_MIGRATED, FURTHEST_NEXT_USE = 0, 2
HISTORY = 1
LEAST_DOUBT = 16  # launches for which what is known to be there is not doubted
LONG_PAST = 4096  # launches
SHORT_QUEUE = 64  # launches
RESTED = 32  # blocks brought since a block's last use
EVICTION_BATCH = 8
MOST_COMMAND_BLOCKS = 8
VICTIM_SCAN, EXPECTED_SCAN = 4096, 256


class Placement:
    """Makes access sets resident, on the belief that holds when all commands given so far are carried out."""

    def __init__(self, settings: CoreSettings) -> None:
        self.settings = settings
        self.allocations: dict[int, Allocation] = {}
        self.devices: dict[int, Memory] = {}
        self.bound: dict[Name, tuple[int, int]] = {}  # slot and first UM block
        self.placed = 0  # launches to come
        self.position = 0
        self.claim = 0
        self.doubt_after = 0
        self.sequence = 0
        self.commands: list[Command] = []
        self.last: dict[str, int] = {}  # place in commands of the last one of a kind

    def memory(self, device: int) -> Memory:
        span = 1
        while span < self.settings.prefetch_degree + 2:
            span *= 2
        by_migration = self.settings.eviction_order == LEAST_RECENTLY_MIGRATED
        only_placed = self.settings.prediction != HISTORY and self.settings.eviction_order != FURTHEST_NEXT_USE
        return self.devices.setdefault(device, Memory(by_migration=by_migration, span=span, only_placed=only_placed))

    def doubt(self, execution: Execution) -> int:
        """Launches after which its blocks are doubted."""
        if not execution.period:
            return self.settings.confidence_launches
        return min(self.settings.confidence_launches, max(execution.period - execution.period // 8, LEAST_DOUBT))

    def locate(self, runs: dict[Run, int], distance: int) -> list[Span]:
        spans = []
        for (name, first, count), age in runs.items():
            # Handed out within the distance: what bears its name now is another.
            if name in self.bound and age >= distance:
                slot, origin = self.bound[name]
                most = len(self.allocations[slot].blocks) - origin - first
                if most > 0:
                    spans.append((slot, origin + first, min(count, most)))
        return spans

    def place(self, spans: list[Span], position: int, actual: bool) -> bool:
        self.claim += 1
        blocks = [block for slot, first, count in spans for block in self.allocations[slot].blocks[first : first + count]]
        for block in blocks:
            if not block.resident:
                continue
            memory = self.memory(self.allocations[block.slot].device)
            self.use(memory, block, position, actual)
            doubtful = self.position - block.confirmed > self.doubt_after
            if self.settings.policy == CORRELATION and memory.under_pressure() and doubtful:
                self.command("prefetch", block, 0, 0, block.moved_out)
                block.confirmed = self.position
                if not self.settings.pre_eviction:
                    memory.renew(block)
        return all(block.resident or block.stays_away or self.bring(block, position, actual) for block in blocks)

    def use(self, memory: Memory, block: UmBlock, position: int, actual: bool) -> None:
        block.claim = self.claim
        if actual:
            memory.use(block, position)
        else:
            memory.expect(block, position)

    def hold(self, spans: list[Span], stream: int) -> None:
        if self.settings.policy != CORRELATION:
            return
        until: dict[int, int] = {}
        for slot, first, count in spans:
            allocation = self.allocations[slot]
            for block in allocation.blocks[first : first + count]:
                until[allocation.device] = max(until.get(allocation.device, 0), block.brought)
        for device, move in sorted(until.items()):
            memory = self.memory(device)
            mixed = memory.out_streams != 1 << stream or (memory.mixed and self.position - memory.mixed <= LONG_PAST)
            if move <= memory.held.get(stream, 0) or (memory.out_streams and mixed):
                continue
            memory.held[stream] = move
            made = Command(len(self.commands) + 1, self.sequence, 0, 1 << stream, move, 0, 0, 0, 0, "hold", 0, device, 0)
            self.commands.append(made)

    def bring(self, block: UmBlock, position: int, actual: bool) -> bool:
        memory = self.memory(self.allocations[block.slot].device)
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
        if not decide and memory.known and not memory.free() and memory.order:
            memory.drop(memory.order[0])
        if decide and block.evicted_for > position:
            memory.narrow()
        block.evicted_for = 0
        memory.grown += block.fresh
        block.fresh = False
        space = memory.take_space()
        memory.add(block)
        block.used_after = memory.migrations
        self.use(memory, block, position, actual)
        block.fetched = not actual
        memory.fetched += not actual
        block.confirmed, block.streams = self.position, 0
        if decide:
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
        for block in memory.order[:VICTIM_SCAN]:
            if block.claim != self.claim:
                return block
        for block in memory.beyond(max(position, self.position + self.placed), EXPECTED_SCAN):
            if block.claim != self.claim and not block.fetched and memory.migrations - block.used_after >= RESTED:
                return block
        if anything:
            for block in memory.beyond(0, VICTIM_SCAN):
                if block.claim != self.claim:
                    memory.narrow()
                    return block
        return None

    def evict(self, memory: Memory, block: UmBlock, position: int) -> None:
        memory.drop(block)
        block.evicted_for = position
        if block.populated:
            self.note_streams(memory, block)
            self.command("evict", block, block.use_sequence, block.streams, block.moved_in)
            memory.freed.append(block.moved_out)

    def note_streams(self, memory: Memory, victim: UmBlock) -> None:
        if victim.use_sequence and victim.streams:
            several = victim.streams & (victim.streams - 1) != 0
            if memory.out_streams and (memory.out_streams != victim.streams or several):
                memory.mixed = self.position
            memory.out_streams = victim.streams

    def command(self, kind: str, block: UmBlock, after_sequence: int, streams: int, after_move: int) -> None:
        if not after_sequence:
            streams = 0
        allocation = self.allocations[block.slot]
        place = self.last.get(kind)
        last = self.commands[place] if place is not None else None
        if (
            last is not None
            and place is not None
            and last.cause == self.sequence
            and (last.device, last.slot, last.first_block + last.block_count) == (allocation.device, block.slot, block.index)
            and last.block_count < MOST_COMMAND_BLOCKS
            and (last.after_sequence, last.stream_mask) == (after_sequence, streams)
            and after_move < last.id
        ):
            made = replace(last, block_count=last.block_count + 1, after_move=max(last.after_move, after_move))
            self.commands[place] = made
        else:
            made = Command(
                id=len(self.commands) + 1,
                cause=self.sequence,
                after_sequence=after_sequence,
                stream_mask=streams,
                after_move=after_move,
                slot=block.slot,
                generation=allocation.generation,
                first_block=block.index,
                block_count=1,
                kind=kind,
                advice=0,
                device=allocation.device,
                location=0,
            )
            self.commands.append(made)
            self.last[kind] = len(self.commands) - 1
        if kind == "prefetch":
            block.moved_in = made.id
        else:
            block.moved_out = made.id
