"""Prefetches and holds in plain Python: what native/core/placement/placer.cpp does."""

from __future__ import annotations

from reference_block import Span, SpanUse, UmBlock
from reference_commands import BRINGS, CORRELATION
from reference_history import Execution
from reference_memory import Memory
from reference_uses import Argument
from reference_victims import Victims

from deepum.core import Command, CoreSettings

LEAST_DOUBT = 16  # launches for which what is known to be there is not doubted
DOUBT_SHARE = 24  # of what is fetched, the part that is asked for again where it is believed to be, at most
FREE_DOUBTS = 5  # and besides, as many times as much as is on the device
LONG_PAST = 4096  # launches


class Placement(Victims):
    """Makes access sets resident, on the belief that holds when all commands given so far are carried out."""

    def __init__(self, settings: CoreSettings) -> None:
        super().__init__(settings)
        self.doubt_after = 0

    def doubt(self, execution: Execution) -> int:
        """Launches after which its blocks are doubted."""
        if not execution.period:
            return self.settings.confidence_launches
        return min(self.settings.confidence_launches, max(execution.period - execution.period // 8, LEAST_DOUBT))

    def locate(self, execution: Execution, distance: int) -> list[tuple[Span, SpanUse]]:
        spans: list[tuple[Span, SpanUse]] = []
        for run, age in execution.runs.items():
            name, first, count = run
            # Handed out within the distance: what bears its name now is another.
            if name in self.bound and age >= distance:
                slot, origin = self.bound[name]
                most = len(self.allocations[slot].blocks) - origin - first
                if most > 0:
                    spans.append(((slot, origin + first, min(count, most)), SpanUse(execution.uses[run].now, execution.uses[run].leaves())))
        return spans

    def place(self, spans: list[tuple[Span, SpanUse]], position: int, actual: bool) -> bool:
        self.claim += 1
        for memory in self.devices.values():
            memory.wanted = 0
        blocks = [(block, use) for span, use in spans for block in self.blocks(span)]
        for block, _ in blocks:
            memory = self.memory_of(block)
            if not block.resident:
                memory.wanted += not self.does_without(block)
                continue
            if self.passes_over(block):
                block.claim = self.claim
            else:
                self.use(memory, block, position, actual)
            if self.settings.policy == CORRELATION and memory.under_pressure() and self.doubts(memory, block):
                kind = "populate" if block.populates else "prefetch"
                self.command(kind, block, 0, 0, 0 if block.stayed else block.moved_out)
                block.confirmed, block.confirmed_after = self.position, memory.fetches
                if not self.settings.pre_eviction:
                    memory.renew(block)
        return all(block.resident or self.does_without(block) or self.bring(block, use, position, actual) for block, use in blocks)

    def doubts(self, memory: Memory, block: UmBlock) -> bool:
        if block.stays_away or self.position - block.confirmed <= self.doubt_after:
            return False
        settled = block.confirmed > 0 and self.settings.pre_eviction
        if not settled or memory.fetches - block.confirmed_after >= DOUBT_SHARE * memory.used:
            return True
        free = memory.freely_doubted < FREE_DOUBTS * memory.used
        memory.freely_doubted += free
        return free

    def does_without(self, block: UmBlock) -> bool:
        return block.stays_away or self.passes_over(block)

    def use(self, memory: Memory, block: UmBlock, position: int, actual: bool) -> None:
        block.claim = self.claim
        if actual:
            memory.use(block, position)
        else:
            memory.expect(block, position)

    def hold(self, arguments: list[Argument], stream: int) -> None:
        if self.settings.policy != CORRELATION:
            return
        until: dict[tuple[int, int], int] = {}  # by device and kind
        for argument in arguments:
            device = self.allocations[argument.span[0]].device
            for block in self.blocks(argument.span):
                key = (device, BRINGS.index("populate" if block.populates else "prefetch"))
                until[key] = max(until.get(key, 0), block.brought)
        for (device, kind), move in sorted(until.items()):
            memory = self.memory(device)
            mixed = memory.out_streams != 1 << stream or (memory.mixed and self.position - memory.mixed <= LONG_PAST)
            if move <= memory.held.get((stream, BRINGS[kind]), 0):
                continue
            memory.held[stream, BRINGS[kind]] = move
            behind_others = int(memory.out_streams != 0 and mixed)
            made = Command(len(self.commands) + 1, self.sequence, 0, 1 << stream, move, 0, 0, 0, 0, "hold", behind_others, device, 0)
            self.commands.append(made)

    def bring(self, block: UmBlock, use: SpanUse, position: int, actual: bool) -> bool:
        memory = self.memory_of(block)
        decide = self.settings.policy == CORRELATION and memory.under_pressure()
        if decide and not actual and memory.ahead() >= memory.window():
            memory.full = True
            return False
        outgoing, fetches = None, block.populated
        kind = "prefetch" if fetches or not self.settings.pre_eviction else "populate"
        if decide and self.settings.pre_eviction and not self.make_room(memory, position, actual, fetches):
            return actual
        if decide and not self.settings.pre_eviction:
            room, outgoing = self.yield_room(memory, position, actual)
            if not room:
                return actual
        if not decide and memory.known and not memory.free() and memory.kept:
            memory.room.leave()
            memory.drop(memory.kept[0])
        if decide and block.evicted_for > position:
            memory.narrow()
        block.evicted_for = 0
        memory.grown += block.fresh
        block.filled = self.position if block.fresh else block.filled
        block.fresh = False
        if decide:
            self.prepare_duplicate(block, use)
        freed, emptied = memory.take_space(fetches)
        memory.room.commanded += decide
        memory.wanted = max(0, memory.wanted - 1)
        memory.add(block)
        block.used_after = memory.migrations
        self.use(memory, block, position, actual)
        block.first_use = 0
        block.fetched = not actual
        memory.fetched += not actual
        memory.fetches += decide and fetches
        block.confirmed, block.confirmed_after, block.streams = self.position, memory.fetches, 0
        if decide:
            self.await_move(memory, memory.ordinal, kind, max(block.discarded, emptied))
            if self.direction(freed) != self.direction(block.moved_out):
                self.await_move(memory, memory.ordinal, kind, min(freed, block.moved_out))
            after, streams = (outgoing.use_sequence, outgoing.streams) if outgoing is not None else (0, 0)
            self.command(kind, block, after, streams, max(freed, block.moved_out))
            block.brought = block.moved_in
            block.populated = True
        return True
