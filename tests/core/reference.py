"""The decision core in plain Python: what native/core decides, said as simply as possible. Compared with it command for command.

Left out, because they change nothing in what is decided within the limits that the tests use: rows and ways of the block tables (they
only forget), the limit on table memory, bounds against hostile events, profiles.
"""

from __future__ import annotations

import bisect
from collections import OrderedDict, deque
from dataclasses import dataclass, field, replace
from typing import Any

from deepum.core import (
    UM_BLOCK_BYTES,
    Allocate,
    Block,
    BlockRange,
    Command,
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

MASK = (1 << 64) - 1
CORRELATION, OLDEST_LAST_USE = 1, 1
LEAST_DOUBT = 16  # launches for which what is known to be there is not doubted
PROVEN = 2  # launches of an ID before it is fetched for ahead
MISTAKE = 4  # blocks by which one narrows the window
LONG_PAST = 4096  # launches
SOON, SHORT_QUEUE = 8, 64  # launches
TRUST = 2  # launches placed ahead for each prediction in a row that was right
EVICTION_BATCH = 8
MOST_COMMAND_BLOCKS = 8
VICTIM_SCAN = 4096
SHAKEN = 16
SMALL_POOL = 1 << 20

Name = tuple[str, int, int] | tuple[str, int]  # of an allocation, or of a PyTorch block by (size, ordinal)
Run = tuple[Name, int, int]
Span = tuple[int, int, int]


def mix(value: int) -> int:
    """splitmix64."""
    value = value + 0x9E3779B97F4A7C15 & MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


@dataclass(eq=False)
class UmBlock:
    slot: int
    index: int
    use_position: int = 0
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
    host: bool = False
    expected: bool = False  # on its memory's list of that name


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


@dataclass
class Memory:
    """A device's."""

    known: bool = False
    capacity: int = 0
    allocated: int = 0
    freed: deque[int] = field(default_factory=deque)  # evictions whose space is not taken yet
    order: list[UmBlock] = field(default_factory=list)  # resident, first to be evicted first
    expected: list[UmBlock] = field(default_factory=list)  # resident and placed for launches to come
    by_migration: bool = False  # the order; by last use otherwise
    migrations: int = 0
    used: int = 0
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
        self.order.append(block)

    def keep(self, block: UmBlock) -> None:
        block.expected = False
        if self.by_migration:
            bisect.insort(self.order, block, key=lambda other: other.migrated)
        else:
            self.order.append(block)

    def drop(self, block: UmBlock) -> None:
        (self.expected if block.expected else self.order).remove(block)
        self.used -= 1
        block.resident = block.expected = False

    def window(self) -> int:
        return self.capacity - min(self.withheld, self.capacity - self.capacity // 8)

    def narrow(self) -> None:
        self.withheld = max(self.withheld, self.capacity - min(self.capacity, len(self.expected))) + MISTAKE

    def expect_none_until(self, position: int) -> None:
        while self.expected and self.expected[0].use_position <= position:
            self.keep(self.expected.pop(0))

    def take_space(self) -> int:
        self.used += 1
        unclaimed = max(0, self.capacity - self.used)
        if not self.freed or unclaimed >= len(self.freed):
            return 0
        return self.freed.popleft()


@dataclass
class Execution:
    id: int
    launches: int = 0
    last: int = 0  # number of the latest launch
    period: int = 0  # launches from the one before it to that; 0: there was none
    records: list[tuple[tuple[int | None, ...], int]] = field(default_factory=list)  # most recent first
    runs: dict[Run, int] = field(default_factory=dict)  # each with how many launches before the latest one it had been handed out


class Reference:
    """Events in, commands out."""

    def __init__(self, settings: CoreSettings) -> None:
        self.settings = settings
        self.executions: OrderedDict[int, Execution] = OrderedDict()  # by hash, longest unused first
        self.by_id: dict[int, Execution] = {}
        self.allocations: dict[int, Allocation] = {}
        self.devices: dict[int, Memory] = {}
        self.bound: dict[Name, tuple[int, int]] = {}  # slot and first UM block
        self.free_ordinals: dict[int, list[int]] = {}
        self.next_ordinal: dict[int, int] = {}
        self.context: list[int | None] = [None] * 4
        self.chain: deque[int] = deque()
        self.chain_context: list[int | None] = [None] * 4
        self.placed = 0
        self.right = 0
        self.position = 0
        self.claim = 0
        self.unwaited = 0  # launches since the program last waited
        self.doubt_after = 0
        self.sequence = 0
        self.commands: list[Command] = []
        self.last: dict[str, int] = {}  # place in commands of the last one of a kind

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

    def memory(self, device: int) -> Memory:
        return self.devices.setdefault(device, Memory(by_migration=self.settings.eviction_order != OLDEST_LAST_USE))

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
        self.bound[name] = (event.slot, 0)
        self.memory(event.device).allocated += count

    def forget(self, slot: int) -> None:
        allocation = self.allocations.pop(slot)
        memory = self.memory(allocation.device)
        for block in allocation.blocks:
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
        self.chain.clear()
        self.placed = 0
        self.expect_nothing()

    # PyTorch's blocks: named by size and the lowest free ordinal.

    def on_block(self, event: Block) -> None:
        allocation = self.allocations.get(event.slot)
        if allocation is None or allocation.generation != event.generation or not event.bytes:
            return
        if event.offset + event.bytes > allocation.bytes:
            return
        allocation.reported = True
        if event.offset in allocation.active:
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
        if runs:
            ages = dict(reversed(runs))  # of a run that comes twice, the first
            execution.runs = {run: ages[run] for run, _ in runs}
        self.follow(execution.id)
        self.doubt_after = self.doubt(execution)
        self.place(spans, self.position, actual=True)
        self.hold(spans, event.stream)
        for slot, first, count in spans:
            for block in self.allocations[slot].blocks[first : first + count]:
                block.use_sequence = event.sequence
                block.streams |= 1 << event.stream
                block.populated = True
        if self.settings.policy == CORRELATION:
            self.extend()
            self.unwaited += 1
            if self.unwaited < SOON or self.settings.launch_queue < SHORT_QUEUE:
                self.place_ahead(self.settings.chain_steps)

    def on_stream(self, event: Stream) -> None:
        if event.kind == "synchronise":
            self.unwaited = 0
            if self.settings.policy == CORRELATION:
                self.place_ahead(len(self.chain))

    def identify(self, execution_hash: int) -> Execution:
        if execution_hash in self.executions:
            self.executions.move_to_end(execution_hash)
            return self.executions[execution_hash]
        number = len(self.executions)
        if number >= self.settings.execution_ids:
            _, old = self.executions.popitem(last=False)
            number = old.id
            # Links of the chain name the ID and the hash it then had.
            self.chain = deque(-1 if link == number else link for link in self.chain)
        execution = Execution(number)
        self.executions[execution_hash] = self.by_id[number] = execution
        return execution

    def learn(self, following: int) -> None:
        if self.context[0] is None:
            return
        before = tuple(self.context[1:])
        records = self.by_id[self.context[0]].records
        kept = [record for record in records if record[0] != before]
        if len(kept) == len(records):
            kept = kept[: self.settings.execution_records - 1]
        self.by_id[self.context[0]].records = [(before, following), *kept]

    def predict(self, context: list[int | None]) -> int | None:
        if context[0] is None:
            return None
        best, longest = None, -1
        for before, following in self.by_id[context[0]].records:
            agree = 0
            while agree < 3 and before[agree] == context[agree + 1]:
                agree += 1
            if agree > longest:
                best, longest = following, agree
        return best

    def follow(self, number: int) -> None:
        self.context = [number, *self.context[:3]]
        if self.settings.policy != CORRELATION:
            return
        if self.chain:
            if self.chain[0] == number:
                self.right += 1
                self.chain.popleft()
                self.placed = max(0, self.placed - 1)
                return
            self.chain.clear()
            self.placed = 0
            self.expect_nothing()
            self.right = 0
        self.chain_context = self.context

    def expect_nothing(self) -> None:
        for memory in self.devices.values():
            memory.expect_none_until(MASK)

    def extend(self) -> None:
        for _ in range(self.settings.chain_steps):
            if len(self.chain) >= self.settings.prefetch_degree:
                return
            if not self.chain:
                self.chain_context = self.context
            following = self.predict(self.chain_context)
            if following is None:
                return
            self.chain.append(following)
            self.chain_context = [following, *self.chain_context[:3]]

    def place_ahead(self, most: int) -> None:
        for _ in range(most):
            if self.placed >= min(len(self.chain), TRUST * self.right):
                return
            link = self.chain[self.placed]
            if link >= 0:
                execution = self.by_id[link]
                if execution.launches < PROVEN:
                    return
                self.doubt_after = self.doubt(execution)
                if not self.place(self.locate(execution.runs, self.placed + 1), self.position + self.placed + 1, actual=False):
                    return
            self.placed += 1

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

    # Placement.

    def place(self, spans: list[Span], position: int, actual: bool) -> bool:
        self.claim += 1
        blocks = [block for slot, first, count in spans for block in self.allocations[slot].blocks[first : first + count]]
        for block in blocks:
            if not block.resident:
                continue
            memory = self.memory(self.allocations[block.slot].device)
            self.use(memory, block, position, actual)
            doubtful = position - min(position, block.confirmed) > self.doubt_after
            if self.settings.policy == CORRELATION and memory.under_pressure() and doubtful:
                self.command("prefetch", block, 0, 0, block.moved_out)
                block.confirmed = position
        return all(block.resident or block.host or self.bring(block, position, actual) for block in blocks)

    def use(self, memory: Memory, block: UmBlock, position: int, actual: bool) -> None:
        block.claim = self.claim
        if block.expected and block.use_position >= position:
            return
        block.use_position = position
        (memory.expected if block.expected else memory.order).remove(block)
        if actual:
            memory.keep(block)
        else:
            block.expected = True
            memory.expected.append(block)

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
        if decide and not actual and len(memory.expected) >= memory.window():
            memory.full = True
            return False
        if decide and not self.make_room(memory, position, actual):
            return actual
        if not decide and memory.known and not memory.free() and memory.order:
            memory.drop(memory.order[0])
        if decide and block.evicted_for > position:
            memory.narrow()
        block.evicted_for = 0
        space = memory.take_space()
        memory.add(block)
        self.use(memory, block, position, actual)
        block.confirmed, block.streams = position, 0
        if decide:
            self.command("prefetch", block, 0, 0, max(space, block.moved_out))
            block.brought = block.moved_in
            block.populated = True
        return True

    def make_room(self, memory: Memory, position: int, actual: bool) -> bool:
        headroom = min(self.settings.headroom_blocks, memory.capacity // 8)
        if memory.free() <= headroom:
            i = 0
            while i < EVICTION_BATCH + headroom - min(headroom, memory.free()):
                victim = self.victim(memory, actual and memory.free() == 0)
                if victim is None:
                    break
                self.evict(memory, victim, position)
                i += 1
        return memory.free() > (0 if actual else headroom)

    def victim(self, memory: Memory, anything: bool) -> UmBlock | None:
        for block in memory.order[:VICTIM_SCAN]:
            if block.claim != self.claim:
                return block
        if anything:
            for block in memory.expected[: -VICTIM_SCAN - 1 : -1]:
                if block.claim != self.claim:
                    memory.narrow()
                    return block
        return None

    def evict(self, memory: Memory, block: UmBlock, position: int) -> None:
        memory.drop(block)
        block.evicted_for = position
        if block.populated:
            if block.use_sequence and block.streams:
                several = block.streams & (block.streams - 1) != 0
                if memory.out_streams and (memory.out_streams != block.streams or several):
                    memory.mixed = self.position
                memory.out_streams = block.streams
            self.command("evict", block, block.use_sequence, block.streams, block.moved_in)
            memory.freed.append(block.moved_out)

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
            block.confirmed = self.position if first <= block.index < end else 0

    def on_moved(self, event: Moved) -> None:
        if event.status not in (2, 3) or not 1 <= event.command <= len(self.commands):
            return
        given = self.commands[event.command - 1]
        allocation = self.allocations.get(given.slot)
        if allocation is None or allocation.generation != given.generation:
            return
        memory = self.memory(allocation.device)
        for block in allocation.blocks[given.first_block : given.first_block + given.block_count]:
            if block.moved_in == given.id > block.moved_out and block.resident:
                memory.drop(block)
            elif block.moved_out == given.id > block.moved_in and not block.resident:
                memory.used += 1
                memory.add(block)
