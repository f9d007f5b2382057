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
CORRELATION = 1
LEAST_RECENTLY_MIGRATED, FURTHEST_NEXT_USE = 0, 2
HISTORY = 1
LEAST_DOUBT = 16  # launches for which what is known to be there is not doubted
PROVEN = 2  # launches of an ID before it is fetched for ahead
MISTAKE = 4  # blocks by which one narrows the window
LONG_PAST = 4096  # launches
SOON, SHORT_QUEUE = 8, 64  # launches
SKIPPED, SKIPPED_KERNELS, INSERTED = 64, 8, 8  # launches that may be missing from, or new to, what came before
LATE_SCAN, SWEEP = 512, 16
RESTED = 32  # blocks brought since a block's last use
TRUST = 2  # launches placed ahead for each prediction in a row that was right
EVICTION_BATCH = 8
MOST_COMMAND_BLOCKS = 8
VICTIM_SCAN, EXPECTED_SCAN = 4096, 256
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
    use_position: int = 0  # of its last use, or of the next one if it is expected
    again: int = 0  # launch that is expected to use it after that one
    awaited: int = 0  # launch that will use it first, as far as that was looked at
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
        self.order.append(block)

    def take_out(self, block: UmBlock) -> None:
        if block.expected:
            self.expected[block.use_position].remove(block)
            if not self.expected[block.use_position]:
                del self.expected[block.use_position]
            self.settle_fetched(block)
        else:
            self.order.remove(block)
        block.expected = False

    def settle_fetched(self, block: UmBlock) -> None:
        self.fetched -= block.fetched
        block.fetched = False

    def keep(self, block: UmBlock, position: int) -> None:
        self.take_out(block)
        block.use_position = position
        if self.by_migration:
            bisect.insort(self.order, block, key=lambda other: other.migrated)
        else:
            self.order.append(block)

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
        block.resident = False

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


@dataclass
class Execution:
    id: int
    launches: int = 0
    last: int = 0  # number of the latest launch
    period: int = 0  # launches from the one before it to that; 0: there was none
    records: list[tuple[tuple[int | None, ...], int]] = field(default_factory=list)  # most recent first
    runs: dict[Run, int] = field(default_factory=dict)  # each with how many launches before the latest one it had been handed out
    kernel: int = 0  # the hash without the names of PyTorch's blocks


@dataclass
class Past:
    """A launch that was."""

    hash: int
    kernel: int
    id: int
    device: int
    growth: int = 0
    died_away: int = 0


class History:
    """The latest launches, and where it was before as it is now. Never full, in what is compared."""

    def __init__(self) -> None:
        self.launches: list[Past] = []
        self.places: dict[int, tuple[int, int]] = {}  # by context modulo the size: the context and the latest place of it
        self.size = 0
        self.recalled: tuple[int | None, int] = (None, 0)

    def append(self, launch: Past) -> None:
        self.launches.append(launch)
        wanted = 64 * 4
        while wanted < 4 * len(self.launches):
            wanted *= 2
        if wanted > self.size:
            self.size, old = wanted, sorted(self.places.values(), key=lambda value: value[1])
            self.places = {context % wanted: (context, place) for context, place in old}
        self.recalled = (None, 0)
        for level, context in enumerate(self.contexts()):
            if context:
                known = self.places.get(context % self.size)
                if known is not None and known[0] == context:
                    self.recalled = (known[1], level + 1)
                self.places[context % self.size] = (context, len(self.launches) - 1)

    def contexts(self) -> list[int]:
        found = [0, 0, 0, 0]
        executions = 0
        for back in range(1, min(8, len(self.launches)) + 1):
            executions = mix(executions + self.launches[-back].hash & MASK)
            if back in (1, 4, 8):
                found[{1: 0, 4: 2, 8: 3}[back]] = executions + back & MASK
        if len(self.launches) >= 32:
            kernels = 0
            for past in self.launches[-32:]:
                kernels = kernels * 0x9E3779B97F4A7C15 + past.kernel & MASK
            found[1] = mix(kernels)
        return found


@dataclass
class Link:
    id: int  # -1: given up since
    kernel: int
    place: int | None
    reserved: int = 0
    device: int = 0


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
        self.chain: deque[Link] = deque()
        self.history = History()
        self.match: tuple[int | None, int] = (None, 0)
        self.inserted = 0
        self.claimed = 0
        self.fullest = 0
        self.looked = 0
        self.sweeping = False
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
        span = 1
        while span < self.settings.prefetch_degree + 2:
            span *= 2
        by_migration = self.settings.eviction_order == LEAST_RECENTLY_MIGRATED
        only_placed = self.settings.prediction != HISTORY and self.settings.eviction_order != FURTHEST_NEXT_USE
        return self.devices.setdefault(device, Memory(by_migration=by_migration, span=span, only_placed=only_placed))

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

    def identify(self, execution_hash: int) -> Execution:
        if execution_hash in self.executions:
            self.executions.move_to_end(execution_hash)
            return self.executions[execution_hash]
        number = len(self.executions)
        if number >= self.settings.execution_ids:
            _, old = self.executions.popitem(last=False)
            number = old.id
            # What names the ID means the hash that it then had.
            for link in (*self.chain, *self.history.launches):
                link.id = -1 if link.id == number else link.id
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
        now = self.history.recalled
        if self.chain:
            at = self.find_in_chain(number)
            right = at == 0 and self.chain[0].id == number
            if at is not None:
                self.right += right
                self.inserted = 0
                for _ in range(at + 1):
                    self.pop_link()
                if self.settings.prediction != HISTORY or not self.mistaken(now, right):
                    return
            else:
                if self.settings.prediction == HISTORY and now[1] <= self.match[1]:
                    self.inserted += 1
                    if self.inserted <= INSERTED:
                        return
                self.right = 0
            self.drop_chain()
            self.expect_nothing()
        self.chain_context = self.context
        self.match = now

    def find_in_chain(self, number: int) -> int | None:
        links = list(self.chain)[:SKIPPED]
        kernel = self.by_id[number].kernel
        if self.settings.prediction != HISTORY:
            return 0 if links[0].id == number else None
        if links[0].id == number or links[0].kernel == kernel:
            return 0
        exact = [i for i, link in enumerate(links) if link.id == number]
        alike = [i for i, link in enumerate(links[:SKIPPED_KERNELS]) if link.kernel == kernel]
        return next(iter(exact or alike), None)

    def mistaken(self, now: tuple[int | None, int], right: bool) -> bool:
        if now[0] == self.match[0]:
            self.match = (self.match[0], max(self.match[1], now[1]))
            return False
        return now[1] > self.match[1] and not right

    def pop_link(self) -> None:
        front = self.chain.popleft()
        memory = self.memory(front.device)
        memory.reserved -= front.reserved
        memory.most_reserved = memory.most_reserved - front.reserved if self.position < self.fullest else memory.reserved
        self.match = (front.place, self.match[1])
        self.claimed = max(0, self.claimed - 1)
        self.placed = max(0, self.placed - 1)

    def drop_chain(self) -> None:
        self.chain.clear()
        self.claimed = self.placed = self.inserted = self.looked = self.fullest = 0
        self.match = (None, 0)
        for memory in self.devices.values():
            memory.reserved = memory.most_reserved = 0

    def expect_nothing(self) -> None:
        for memory in self.devices.values():
            memory.expect_nothing()

    def next_link(self) -> Link | None:
        if self.settings.prediction != HISTORY:
            if not self.chain:
                self.chain_context = self.context
            following = self.predict(self.chain_context)
            if following is None:
                return None
            self.chain_context = [following, *self.chain_context[:3]]
            return Link(following, self.by_id[following].kernel, None)
        before = self.chain[-1].place if self.chain else self.match[0]
        if before is None or self.match[0] is None:
            return None
        place = self.match[0] + 1 if before == len(self.history.launches) - 1 else before + 1
        if place >= len(self.history.launches):
            return None
        past = self.history.launches[place]
        return Link(past.id, past.kernel, place)

    def extend(self) -> None:
        for _ in range(self.settings.chain_steps):
            if len(self.chain) >= self.settings.prefetch_degree:
                return
            link = self.next_link()
            if link is None:
                return
            self.chain.append(link)

    def trusted(self) -> int:
        trust = min(len(self.chain), TRUST * self.right)
        if self.match[0] is None or self.settings.prediction != HISTORY:
            return trust
        return min(trust, len(self.history.launches) - 1 - self.match[0])

    def claim_ahead(self, most: int) -> None:
        expecting = self.settings.eviction_order == FURTHEST_NEXT_USE or self.sweeping
        until = min(self.trusted(), self.claimed + most)
        while self.claimed < until:
            link = self.chain[self.claimed]
            if link.id >= 0 and self.by_id[link.id].launches >= PROVEN:
                for slot, first, count in self.locate(self.by_id[link.id].runs, self.claimed + 1):
                    memory = self.memory(self.allocations[slot].device)
                    for block in self.allocations[slot].blocks[first : first + count]:
                        if not memory.under_pressure():
                            continue
                        if block.resident and expecting:
                            memory.expect(block, self.position + self.claimed + 1)
                        if block.awaited <= self.position:
                            block.awaited = self.position + self.claimed + 1
            self.claimed += 1

    def place_ahead(self, most: int) -> None:
        history = self.settings.prediction == HISTORY
        if history:
            if self.looked == 0 or self.position - self.looked >= len(self.chain) // 8:
                self.find_fullest()
            self.claim_ahead(most)
        trusted = self.trusted()
        for _ in range(most):
            if self.placed >= trusted:
                return
            if self.fullest > self.position and self.position + self.placed + 1 > self.fullest:
                return
            link = self.chain[self.placed]
            known = link.id >= 0 and self.by_id[link.id].launches >= PROVEN
            if not known and not history:
                return
            if known:
                self.doubt_after = self.doubt(self.by_id[link.id])
                spans = self.locate(self.by_id[link.id].runs, self.placed + 1)
                if not self.place(spans, self.position + self.placed + 1, actual=False):
                    return
            self.reserve(link)
            self.placed += 1

    def find_fullest(self) -> None:
        content = most = 0
        self.fullest = self.looked = self.position
        for i, link in enumerate(self.chain):
            content += self.history.launches[link.place].growth if link.place is not None else 0
            if content > most:
                most, self.fullest = content, self.position + i + 1
        front = self.history.launches[self.chain[0].place] if self.chain and self.chain[0].place is not None else None
        self.sweeping = most * SWEEP < self.memory(front.device if front else 0).capacity

    def reserve(self, link: Link) -> None:
        if link.place is None:
            return
        past = self.history.launches[link.place]
        memory = self.memory(past.device)
        link.device, link.reserved = past.device, past.growth + past.died_away
        memory.reserved += link.reserved
        memory.most_reserved = max(memory.most_reserved, memory.reserved)
        if not memory.under_pressure():
            return
        while memory.free() < memory.reserved_blocks() + self.headroom(memory):
            late = max(self.fullest, self.position + self.placed + 1)
            victims = memory.beyond(late, 1) or [block for block in memory.order[:LATE_SCAN] if block.awaited > late]
            if not victims:
                return
            self.evict(memory, victims[0], self.position + self.placed + 1)

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
            doubtful = self.position - block.confirmed > self.doubt_after
            if self.settings.policy == CORRELATION and memory.under_pressure() and doubtful:
                self.command("prefetch", block, 0, 0, block.moved_out)
                block.confirmed = self.position
        return all(block.resident or block.host or self.bring(block, position, actual) for block in blocks)

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
        if decide and not self.make_room(memory, position, actual):
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
            self.command("prefetch", block, 0, 0, max(space, block.moved_out))
            block.brought = block.moved_in
            block.populated = True
        return True

    def headroom(self, memory: Memory) -> int:
        return min(self.settings.headroom_blocks, memory.capacity // 8)

    def make_room(self, memory: Memory, position: int, actual: bool) -> bool:
        headroom = self.headroom(memory)
        modest = self.settings.prediction == HISTORY and self.settings.launch_queue >= SHORT_QUEUE
        reserved = memory.reserved_blocks()
        if not actual and (modest or reserved > 0) and memory.free() <= headroom + reserved:
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
