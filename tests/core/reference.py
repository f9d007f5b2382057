"""The decision core in plain Python: what native/core decides, said as simply as possible. Compared with it command for command.

Left out, because they change nothing in what is decided within the limits that the tests use: rows and ways of the block tables (they
only forget), the limit on table memory, bounds against hostile events, profiles.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

from deepum._core import lib
from reference_advice import SPARSE
from reference_block import SpanUse, UmBlock, Use
from reference_capacity import Capacity
from reference_clean import SET_READ_MOSTLY
from reference_commands import CORRELATION, FURTHEST_NEXT_USE, HISTORY
from reference_history import Past, mix
from reference_memory import Allocation
from reference_uses import DUPLICATE, Argument
from reference_victims import SHORT_QUEUE

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
    FreeMemory,
    Lost,
    Moved,
    Program,
    Progress,
    Stream,
)
from deepum.core.records import FAULT_ATOMIC, FAULT_WRITE

SOON = 8  # launches
SHAKEN = 16
OF_PROGRAM = 1
GRAPH = lib.DEEPUM_EXECUTE_GRAPH


class Reference(Capacity):
    """Events in, commands out."""

    def __init__(self, settings: CoreSettings) -> None:
        super().__init__(settings)
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
            Progress: self.on_progress,
            Moved: self.on_moved,
            Lost: self.on_lost,
            FreeMemory: self.on_free_memory,
        }
        if type(event) in handler:
            handler[type(event)](event)

    def on_allocate(self, event: Allocate) -> None:
        if event.slot in self.allocations:
            self.forget(event.slot)
        origin = event.first_offset % UM_BLOCK_BYTES
        count = -(-(origin + event.bytes) // UM_BLOCK_BYTES)
        name = ("allocation", event.name)
        blocks = [UmBlock(event.slot, i) for i in range(count)]
        self.allocations[event.slot] = Allocation(event.generation, event.device, name, event.bytes, self.position, blocks, origin)
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
        memory.to_copy = deque(entry for entry in memory.to_copy if entry.slot != slot)
        memory.to_settle = deque(settling for settling in memory.to_settle if settling[0].slot != slot)
        for torch_block in allocation.active.values():
            self.forget_torch_block(torch_block)
        self.bound.pop(allocation.name, None)

    def on_free(self, event: Free) -> None:
        if event.slot in self.allocations and self.allocations[event.slot].generation == event.generation:
            self.forget(event.slot)

    def on_lost(self, _event: Lost) -> None:
        self.forget_trials()
        self.pace.forget()
        self.remote.abandon()
        for slot in sorted(self.allocations):
            self.forget(slot)
        self.context = [None] * 4
        self.drop_chain()
        self.expect_nothing()
        for device in range(lib.DEEPUM_MAX_DEVICES):
            self.memory(device).room.leave()

    # Launches.

    def valid(self, where: BlockRange) -> Allocation | None:
        allocation = self.allocations.get(where.slot)
        return allocation if allocation and where.first + where.count <= len(allocation.blocks) else None

    def exceeds_capacity(self, arguments: list[Argument]) -> bool:
        places = {(argument.span[0], i) for argument in arguments for i in range(argument.span[1], argument.span[1] + argument.span[2])}
        blocks = Counter(self.allocations[slot].device for slot, _ in places)
        return any(self.memory(device).known and count > self.memory(device).capacity for device, count in blocks.items())

    def on_execute(self, event: Execute) -> None:
        arguments: list[Argument] = []
        ages: list[int] = []
        execution_hash = event.execution_hash
        uses = [Use.WRITES] * len(event.written) + [Use.READS] * len(event.read) + [Use.UNKNOWN] * len(event.unknown)
        for r, use in zip(event.ranges, uses, strict=True):
            allocation = self.valid(r)
            if allocation is None or r.count == 0:
                continue
            run, born, regularity = self.name_run(allocation, r.first, r.count)
            self.note_regularity(allocation, r.first, r.count, regularity)
            arguments.append(Argument((r.slot, r.first, r.count), run, use))
            ages.append(self.position - born)
            if allocation.reported and run[0] != allocation.name:
                execution_hash = mix(execution_hash ^ self.name_hash(run[0]))
        self.position += 1
        over = self.exceeds_capacity(arguments)
        for memory in self.devices.values():
            if over:
                memory.doubt_all_once()
            memory.expect_none_until(self.position)
            memory.withheld = max(0, memory.withheld - memory.full)
            memory.full = False
        execution = self.identify(execution_hash)
        self.learn(execution.id)
        execution.period = self.position - execution.last if execution.last else 0
        execution.last = self.position
        execution.launches += 1
        execution.kernel = event.execution_hash
        if arguments:
            execution.touch([(argument.run, age) for argument, age in zip(arguments, ages, strict=True)])
        self.inherit_uses(execution)
        self.sparse = execution.sparse = bool(event.flags & SPARSE)
        self.note_sparse_uses(arguments, event.flags)
        self.learn_uses(execution, arguments)
        self.measure_iteration(execution.period)
        if self.settings.advice & DUPLICATE and self.faults_are_told:
            self.pace.launched(self.position, event.sequence, self.iteration, self.dropped)
        self.try_remote()
        self.history.append(Past(execution_hash, event.execution_hash, execution.id, event.device))
        restarts = self.restarts
        self.follow(execution.id)
        self.watch_learning(execution, self.restarts > restarts)
        self.doubt_after = self.doubt(execution)
        self.note_writes(arguments)
        self.place([(argument.span, SpanUse(argument.use, argument.leaves)) for argument in arguments], self.position, actual=True)
        self.try_uses(arguments, event.stream)
        memory, past = self.memory(event.device), self.history.launches[-1]
        past.growth, past.died_away = memory.grown, memory.died_away
        memory.grown = memory.died_away = 0
        self.hold(arguments, event.stream)
        self.used_streams |= 1 << event.stream
        self.graphs |= bool(event.flags & GRAPH)
        for argument in arguments:
            for block in self.blocks(argument.span):
                block.use_sequence = event.sequence
                if not block.first_use:
                    block.first_use, block.first_stream = event.sequence, event.stream
                block.streams |= 1 << event.stream
                block.populated = True
        self.count_touched(arguments)
        if self.settings.policy == CORRELATION:
            self.extend()
            self.queue_copies(arguments)
            self.copy_out_ahead(memory, event.device, event.stream)
            if self.settings.eviction_order == FURTHEST_NEXT_USE:
                self.claim_ahead(self.settings.chain_steps)
                if self.settings.prediction == HISTORY and memory.under_pressure():
                    self.reserve_ahead(self.settings.chain_steps)
                    self.leave_ahead(memory)
            self.unwaited += 1
            if self.unwaited < SOON or self.settings.launch_queue < SHORT_QUEUE:
                self.place_ahead(self.settings.chain_steps)
            else:
                self.fetch_ahead(memory)
        self.note_fill_point()

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
                memory.room.leave()
                memory.drop(block)
            elif event.location == allocation.device and not block.resident and memory.free():
                memory.take_space(True)
                memory.add(block)
                memory.spare(block, self.position)
                block.populated = True
                block.confirmed, block.confirmed_after = self.position, memory.fetches

    def on_fault(self, event: Fault) -> None:
        allocation = self.valid(event.range)
        if allocation is None:
            return
        wrote = event.flags & (FAULT_WRITE | FAULT_ATOMIC) != 0
        first, end = event.range.first, event.range.first + event.range.count
        memory, taken = self.memory(allocation.device), 0
        evident = not (wrote and self.settings.advice & DUPLICATE and self.faults_are_told)
        for block in allocation.blocks[max(0, first - SHAKEN) : end + SHAKEN]:
            faulted = first <= block.index < end
            taken += faulted and evident and self.was_taken(memory, allocation, block)
            block.confirmed = self.position if faulted else 0
            block.confirmed_after = memory.fetches
            block.faulted |= faulted
            block.written |= faulted and wrote
        if taken:
            self.note_taken(memory, taken)
        if wrote:
            self.note_written((event.range.slot, first, event.range.count))

    def on_moved(self, event: Moved) -> None:
        if event.status not in (2, 3, 4) or not 1 <= event.command <= len(self.commands):
            return
        given = self.commands[event.command - 1]
        refused = event.status == 4
        if refused and given.kind != "discard":
            return
        if refused and not self.discards_refused:
            self.stop_discarding()
        allocation = self.allocations.get(given.slot)
        if allocation is None or allocation.generation != given.generation:
            return
        memory = self.memory(allocation.device)
        for block in allocation.blocks[given.first_block : given.first_block + given.block_count]:
            if given.kind == "advise" and given.advice == SET_READ_MOSTLY:
                self.single(block)
            elif given.kind == "copy_out":
                memory.uncopy(block)
            elif given.kind == "collapse":
                block.mostly = True
            elif given.kind == "advise":
                self.forget_advice(block)
            elif block.moved_in == given.id > block.moved_out and block.resident:
                memory.drop(block)
            elif given.kind == "discard" and block.discarded == given.id:
                block.populated = True
                if block.dead and not refused:
                    self.pause_discarding()
                if not block.resident and block.discarded > max(block.moved_in, block.moved_out):
                    memory.used += 1
                    memory.add(block)
                    if (space := next((one for one in memory.emptied if one[0] == given.id), None)) is not None:
                        memory.emptied.remove(space)
            elif block.moved_out == given.id > block.moved_in and not block.resident:
                memory.used += 1
                memory.add(block)
        if given.kind == "discard":
            self.evict_surplus(memory)
