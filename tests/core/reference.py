"""The decision core in plain Python: what native/core decides, said as simply as possible. Compared with it command for command.

Left out, because they change nothing in what is decided within the limits that the tests use: rows and ways of the block tables (they
only forget), the limit on table memory, bounds against hostile events, profiles.
"""

from __future__ import annotations

import bisect
from typing import Any

from reference_chain import Chain
from reference_history import MASK, Past, mix
from reference_memory import Allocation, Name, Run, Span, TorchBlock, UmBlock
from reference_placement import CORRELATION, FURTHEST_NEXT_USE, SHORT_QUEUE

from deepum.core import (
    UM_BLOCK_BYTES,
    Allocate,
    Block,
    BlockRange,
    CoreSettings,
    Device,
    Event,
    Execute,
    Fault,
    Free,
    Lost,
    Moved,
    Program,
    Stream,
)
from deepum.core.records import FAULT_ATOMIC, FAULT_WRITE

SOON = 8  # launches
SHAKEN = 16
OF_PROGRAM = 1
SMALL_POOL = 1 << 20


class Reference(Chain):
    """Events in, commands out."""

    def __init__(self, settings: CoreSettings) -> None:
        super().__init__(settings)
        self.free_ordinals: dict[int, list[int]] = {}
        self.next_ordinal: dict[int, int] = {}
        self.unwaited = 0  # launches since the program last waited

    # Events.

    def process(self, event: Event) -> None:
        self.sequence = event.sequence
        handler: dict[type[Event], Any] = {
            Device: self.on_device,
            Allocate: self.on_allocate,
            Free: self.on_free,
            Block: self.on_block,
            Execute: self.on_execute,
            Stream: self.on_stream,
            Program: self.on_program,
            Fault: self.on_fault,
            Moved: self.on_moved,
            Lost: self.on_lost,
        }
        if type(event) in handler:
            handler[type(event)](event)

    def on_device(self, event: Device) -> None:
        memory = self.memory(event.device)
        memory.capacity = min(event.total_bytes, event.capacity_bytes) // UM_BLOCK_BYTES
        if not memory.known:
            memory.withheld = memory.capacity // 2
        memory.known = True

    def on_allocate(self, event: Allocate) -> None:
        if event.slot in self.allocations:
            self.forget(event.slot)
        count = -(-event.bytes // UM_BLOCK_BYTES)
        name = ("allocation", event.name)
        blocks = [UmBlock(event.slot, i) for i in range(count)]
        self.allocations[event.slot] = Allocation(event.generation, event.device, name, event.bytes, self.position, blocks)
        self.allocations[event.slot].of_program = bool(event.flags & OF_PROGRAM)
        self.bound[name] = (event.slot, 0)
        self.memory(event.device).allocated += count

    def forget(self, slot: int) -> None:
        allocation = self.allocations.pop(slot)
        memory = self.memory(allocation.device)
        for block in allocation.blocks:
            memory.grown -= not (block.fresh or block.dead)
            memory.died_away += not (block.fresh or block.dead or block.resident)
            if block.resident:
                memory.drop(block)
        memory.allocated -= len(allocation.blocks)
        for block in allocation.active.values():
            self.forget_torch_block(block)
        self.bound.pop(allocation.name, None)

    def on_free(self, event: Free) -> None:
        if event.slot in self.allocations and self.allocations[event.slot].generation == event.generation:
            self.forget(event.slot)

    def on_lost(self, _event: Lost) -> None:
        for slot in sorted(self.allocations):
            self.forget(slot)
        self.context = [None] * 4
        self.drop_chain()
        self.expect_nothing()

    # PyTorch's blocks: named by size and the lowest free ordinal.

    def on_block(self, event: Block) -> None:
        allocation = self.allocations.get(event.slot)
        if allocation is None or allocation.generation != event.generation or not event.bytes:
            return
        if event.offset + event.bytes > allocation.bytes:
            return
        allocation.reported = True
        known = event.offset in allocation.active
        if known:
            self.forget_torch_block(allocation.active.pop(event.offset))
        if event.kind == "block_active":
            key = -(-event.bytes // UM_BLOCK_BYTES) << 8 | allocation.device
            free = self.free_ordinals.setdefault(key, [])
            if free:
                ordinal = free.pop(0)
            else:
                ordinal = self.next_ordinal.get(key, 0)
                self.next_ordinal[key] = ordinal + 1
            name = ("torch", key, ordinal)
            allocation.active[event.offset] = TorchBlock(self.position, event.bytes, ordinal, key, name)
            self.bound[name] = (event.slot, event.offset // UM_BLOCK_BYTES)
            self.mark_alive(allocation, event.offset, event.offset + event.bytes)
        elif known:
            self.mark_dead(allocation, event.offset, event.offset + event.bytes)

    def mark_alive(self, allocation: Allocation, begin: int, end: int) -> None:
        for block in allocation.blocks[begin // UM_BLOCK_BYTES : -(-end // UM_BLOCK_BYTES)]:
            if block.dead:
                self.memory(allocation.device).grown += block.resident
                block.fresh = not block.resident
            block.dead = False
            block.sparse_uses = 0
            block.dense = False

    def mark_dead(self, allocation: Allocation, begin: int, end: int) -> None:
        memory = self.memory(allocation.device)
        stretch_end = min((offset for offset in allocation.active if offset >= begin), default=allocation.bytes)
        before = max((offset for offset in allocation.active if offset < begin), default=None)
        stretch = 0 if before is None else before + allocation.active[before].bytes
        for block in allocation.blocks[begin // UM_BLOCK_BYTES : -(-end // UM_BLOCK_BYTES)]:
            if block.index * UM_BLOCK_BYTES < stretch or (block.index + 1) * UM_BLOCK_BYTES > stretch_end:
                continue
            memory.grown -= not (block.fresh or block.dead)
            memory.died_away += not (block.fresh or block.dead or block.resident)
            block.dead = True
            if block.resident:
                block.again = 0
                if block.expected:
                    memory.keep(block, block.use_position)

    def forget_torch_block(self, block: TorchBlock) -> None:
        bisect.insort(self.free_ordinals[block.key], block.ordinal)
        self.bound.pop(block.name, None)

    def name_run(self, allocation: Allocation, first: int, count: int) -> tuple[Run, int]:
        """The run by name, and after how many launches what bears the name was handed out."""
        begin, end = first * UM_BLOCK_BYTES, (first + count) * UM_BLOCK_BYTES
        best, most = None, 0
        # Only from the block that begins last before the run; blocks do not overlap.
        offsets = sorted(allocation.active)
        start = max(0, bisect.bisect_right(offsets, begin) - 1)
        for offset in offsets[start:]:
            block = allocation.active[offset]
            low, high = offset, offset + block.bytes
            if high <= begin or low >= end:
                continue
            exact = low >= begin and high <= end and low // UM_BLOCK_BYTES == first and (high - 1) // UM_BLOCK_BYTES == first + count - 1
            size = min(high, end) - max(low, begin) + (end if exact else 0)
            if size > most:
                best, most = block, size
        if best is None or best.bytes <= SMALL_POOL or best.name not in self.bound or self.bound[best.name][1] > first:
            return (allocation.name, first, count), allocation.born
        return (best.name, first - self.bound[best.name][1], count), best.born

    def name_hash(self, name: Name) -> int:
        return mix(mix(name[1] ^ 0x50794254726F6368) + name[2] & MASK)  # type: ignore[misc]

    # Launches.

    def valid(self, where: BlockRange) -> Allocation | None:
        allocation = self.allocations.get(where.slot)
        return allocation if allocation and where.first + where.count <= len(allocation.blocks) else None

    def on_execute(self, event: Execute) -> None:
        spans: list[Span] = []
        runs: list[tuple[Run, int]] = []
        execution_hash = event.execution_hash
        for r in event.ranges:
            allocation = self.valid(r)
            if allocation is None or r.count == 0:
                continue
            spans.append((r.slot, r.first, r.count))
            run, born = self.name_run(allocation, r.first, r.count)
            runs.append((run, self.position - born))
            if allocation.reported and run[0] != allocation.name:
                execution_hash = mix(execution_hash ^ self.name_hash(run[0]))
        self.position += 1
        for memory in self.devices.values():
            memory.expect_none_until(self.position)
            memory.withheld = max(0, memory.withheld - memory.full)
            memory.full = False
        execution = self.identify(execution_hash)
        self.learn(execution.id)
        execution.period = self.position - execution.last if execution.last else 0
        execution.last = self.position
        execution.launches += 1
        execution.kernel = event.execution_hash
        if runs:
            ages = dict(reversed(runs))  # of a run that comes twice, the first
            execution.runs = {run: ages[run] for run, _ in runs}
        self.history.append(Past(execution_hash, event.execution_hash, execution.id, event.device))
        self.follow(execution.id)
        self.doubt_after = self.doubt(execution)
        self.note_sparse_uses(spans, event.flags)
        self.place(spans, self.position, actual=True)
        memory, past = self.memory(event.device), self.history.launches[-1]
        past.growth, past.died_away = memory.grown, memory.died_away
        memory.grown = memory.died_away = 0
        self.hold(spans, event.stream)
        for slot, first, count in spans:
            for block in self.allocations[slot].blocks[first : first + count]:
                block.use_sequence = event.sequence
                block.streams |= 1 << event.stream
                block.populated = True
        if self.settings.policy == CORRELATION:
            self.extend()
            if self.settings.eviction_order == FURTHEST_NEXT_USE:
                self.claim_ahead(self.settings.chain_steps)
            self.unwaited += 1
            if self.unwaited < SOON or self.settings.launch_queue < SHORT_QUEUE:
                self.place_ahead(self.settings.chain_steps)

    def on_stream(self, event: Stream) -> None:
        if event.kind == "synchronise":
            self.unwaited = 0
            if self.settings.policy == CORRELATION:
                self.place_ahead(len(self.chain))

    # What others did.

    def on_program(self, event: Program) -> None:
        allocation = self.valid(event.range)
        if allocation is None:
            return
        memory = self.memory(allocation.device)
        for block in allocation.blocks[event.range.first : event.range.first + event.range.count]:
            if event.kind == "program_advise":
                if event.advice in (3, 4):  # preferred location: set, unset
                    block.host = event.advice == 3 and event.location < 0
            elif event.location < 0 and block.resident:
                memory.drop(block)
            elif event.location == allocation.device and not block.resident and memory.free():
                memory.take_space()
                memory.add(block)
                block.populated = True
                block.confirmed = self.position

    def on_fault(self, event: Fault) -> None:
        allocation = self.valid(event.range)
        if allocation is None:
            return
        first, end = event.range.first, event.range.first + event.range.count
        for block in allocation.blocks[max(0, first - SHAKEN) : end + SHAKEN]:
            faulted = first <= block.index < end
            block.confirmed = self.position if faulted else 0
            block.faulted |= faulted
            block.written |= faulted and event.flags & (FAULT_WRITE | FAULT_ATOMIC) != 0

    def on_moved(self, event: Moved) -> None:
        if event.status not in (2, 3) or not 1 <= event.command <= len(self.commands):
            return
        given = self.commands[event.command - 1]
        allocation = self.allocations.get(given.slot)
        if allocation is None or allocation.generation != given.generation:
            return
        memory = self.memory(allocation.device)
        for block in allocation.blocks[given.first_block : given.first_block + given.block_count]:
            if given.kind == "advise":
                block.sparse_uses, block.remote, block.dense = 0, False, True
            elif block.moved_in == given.id > block.moved_out and block.resident:
                memory.drop(block)
            elif block.moved_out == given.id > block.moved_in and not block.resident:
                memory.used += 1
                memory.add(block)
