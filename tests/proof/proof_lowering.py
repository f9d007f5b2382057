"""From a random program to the executor's operations: what conflicts is ordered, and nothing is read that was not written.

So a program means on the GPU what it means one operation after the other. How something is ordered (an event, a wait of the host, nothing
where the streams' rules suffice) is as random as the rest, and no more is ordered than has to be.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from proof_caching import CachingAllocator, Piece, Waiting
from proof_order import LEGACY, PER_THREAD, Clock, Order, Stream, merge
from proof_programs import KINDS, MOST_GRANULES, Operation, Program

GRANULE = 1 << 16
MOST_LINEAR = 6  # granules that are copied or set as a whole: it takes the host's time
COPY_ANY, COPY_TYPED, COPY_SYNCHRONOUS, COPY_CELLS, COPY_PEER = range(5)  # enum copy_how
SET_D32, SET_D32_SYNCHRONOUS, SET_CELLS = range(3)  # enum set_how
FLOPS = (0, 0, 10**7, 10**8, 10**9, 5 * 10**9)  # up to a third of a millisecond on a V100, the time of two UM blocks over its link
EVENTS = 4096


@dataclass(slots=True, eq=False)
class Memory:
    """A memory of the program and what is known of it. `mask`: granules that are written, a bit each."""

    number: int
    kind: str
    granules: int
    device: int
    home: int  # stream that it was allocated for
    mask: int = 0
    write: tuple[int, int] | None = None
    last: dict[int, int] = field(default_factory=dict)  # by stream: the latest access
    piece: Piece | None = None

    @property
    def on_host(self) -> bool:
        """Pinned or pageable."""
        return self.kind in ("pin", "hst")


@dataclass(slots=True)
class Capture:
    """A graph: what it reads before it writes it, what it writes."""

    number: int
    device: int
    needs: dict[Memory, int] = field(default_factory=dict)
    makes: dict[Memory, int] = field(default_factory=dict)
    touched: dict[int, set[Memory]] = field(default_factory=dict)  # by stream of the capture, since the fork
    private: list[Memory] = field(default_factory=list)


def bits(first: int, count: int) -> int:
    """The mask of granules [first, first + count)."""
    return ((1 << count) - 1) << first


def runs(mask: int) -> list[tuple[int, int]]:
    """(first, count) of the runs of ones."""
    found = []
    at = 0
    while mask >> at:
        rest = mask >> at
        skip = (rest & -rest).bit_length() - 1
        at += skip
        rest >>= skip
        count = (~rest & (rest + 1)).bit_length() - 1
        found.append((at, count))
        at += count
    return found


class Lowering:
    """One program. `lines` are the executor's operations."""

    def __init__(self, program: Program, index: int) -> None:
        self.program = program
        self.order = Order(list(program.streams))
        self.lines: list[str] = []
        self.memory: dict[str, Memory] = {}
        self.buffers: dict[int, Memory] = {}
        self.graphs: dict[str, Capture] = {}
        self.segments: dict[int, int] = {}
        self.caching = CachingAllocator(self.new_segment, self.end_segment)
        self.thread = 0
        self.op = Operation("start")
        self.capture: Capture | None = None
        self.owners: dict[object, int] | None = None  # in a parallel stretch: who has a stream or a memory
        self.free_numbers: list[int] = []
        self.quarantine: list[int] = []
        self.numbers = 0
        self.event = 0
        self.emit("program", index, program.place, program.threads, program.devices, int(program.resets))

    # ---- what the lines have in common

    def emit(self, name: str, *numbers: int, thread: int | None = None) -> None:
        self.lines.append(f"{self.thread if thread is None else thread} {name} {' '.join(map(str, numbers))}")

    def thread_of(self, *streams: Stream) -> int:
        """A thread's own default stream is only known to that thread, the first one."""
        return 0 if any(stream.kind == PER_THREAD for stream in streams) else self.thread

    def number(self) -> int:
        if self.free_numbers:
            return heapq.heappop(self.free_numbers)
        self.numbers += 1
        return self.numbers - 1

    def give_number_back(self, number: int) -> None:
        if self.owners is not None:
            self.quarantine.append(number)
        else:
            heapq.heappush(self.free_numbers, number)

    def new_event(self) -> int:
        self.event = (self.event + 1) % EVENTS
        return self.event

    def new_segment(self, device: int, size: int) -> int:
        number = self.number()
        self.emit("seg", number, device, size)
        self.segments[number] = device
        return number

    def end_segment(self, number: int) -> None:
        self.emit("fre", number)
        del self.segments[number]
        self.give_number_back(number)

    # ---- order

    def record(self, stream: Stream) -> tuple[int, Clock]:
        event = self.new_event()
        self.emit("rec", event, stream.number, thread=self.thread_of(stream))
        return event, self.order.record(stream)

    def wait(self, stream: Stream, event: int, clock: Clock) -> None:
        self.emit("wai", stream.number, event, thread=self.thread_of(stream))
        self.order.wait(stream, clock)

    def host_wait_event(self, event: int, clock: Clock) -> None:
        self.emit("eqy" if self.op.pick(31, 3) == 0 else "esy", event)
        merge(self.order.host, clock)

    def host_wait(self, point: tuple[int, int], roll: int) -> None:
        """The host waits until that point is over."""
        if self.order.host_covers(point):
            return
        stream = self.order.streams[point[0]]
        if roll < 50:
            self.emit("ssy", stream.number, thread=self.thread_of(stream))
            merge(self.order.host, stream.clock)
        elif roll < 85 or self.owners is not None:
            self.host_wait_event(*self.record(stream))
        else:
            self.synchronise_device(stream.device)

    def synchronise_device(self, device: int) -> None:
        self.emit("csy", device)
        for stream in self.order.streams:
            if stream.device == device:
                merge(self.order.host, stream.clock)

    def order_behind(self, stream: Stream, points: Iterable[tuple[int, int]]) -> None:
        for place, point in enumerate(points):
            if self.order.covers(stream, point):
                continue
            roll = self.op.pick(20 + place % 8, 100)
            if roll < 75:
                self.wait(stream, *self.record(self.order.streams[point[0]]))
            else:
                self.host_wait(point, (roll - 75) * 4)

    def use(self, stream: Stream, read: list[Memory], written: list[Memory]) -> None:
        """The next operation of the stream reads and writes."""
        if self.capture is not None:
            self.capture.touched.setdefault(stream.number, set()).update(read, written)
            return
        for memory in written:
            self.order_behind(stream, list(memory.last.items()))
        self.order_behind(stream, [memory.write for memory in read if memory.write is not None])
        self.order.enter(stream)
        for memory in read + written:
            memory.last[stream.number] = stream.count
        for memory in written:
            memory.write = stream.at()

    # ---- content

    def written(self, memory: Memory) -> int:
        return memory.mask | (self.capture.makes.get(memory, 0) if self.capture else 0)

    def reads(self, memory: Memory, first: int, count: int) -> None:
        if self.capture is not None:
            needed = bits(first, count) & ~self.capture.makes.get(memory, 0)
            self.capture.needs[memory] = self.capture.needs.get(memory, 0) | needed

    def writes(self, memory: Memory, first: int, count: int) -> None:
        if self.capture is not None:
            self.capture.makes[memory] = self.capture.makes.get(memory, 0) | bits(first, count)
        else:
            memory.mask |= bits(first, count)

    def part(self, first: int, count: int, place: int) -> tuple[int, int]:
        """All of it, or a random part."""
        if self.op.pick(place, 100) < 55:
            return first, count
        skip = self.op.pick(place + 1, count)
        return first + skip, 1 + self.op.pick(place + 2, count - skip)

    def written_part(self, memory: Memory, place: int) -> tuple[int, int] | None:
        found = runs(self.written(memory))
        return self.part(*found[self.op.pick(place + 3, len(found))], place) if found else None

    # ---- operations

    def lower(self) -> list[str]:
        for stream in self.order.streams:
            self.emit("sn", stream.number, stream.device, stream.kind)
        for operation in self.program.operations:
            self.apply(operation)
        self.end()
        return self.lines

    def apply(self, operation: Operation) -> None:
        self.op = operation
        self.thread = min(operation.thread, self.program.threads - 1)
        stream = self.order.streams[operation.stream % len(self.order.streams)]
        getattr(self, f"do_{operation.verb}")(operation, stream)

    def find(self, name: str) -> Memory | None:
        """The memory of that name; None: there is none (here, now)."""
        memory = self.memory.get(name)
        if memory is None or self.owners is None:
            return memory
        return memory if self.owners.setdefault(memory, self.thread) == self.thread else None

    def usable(self, name: str, stream: Stream) -> Memory | None:
        """As find, for kernels on the stream."""
        memory = self.memory.get(name)
        return self.find(name) if memory is not None and not memory.on_host and memory.device == stream.device else None

    def do_new(self, op: Operation, stream: Stream) -> None:
        name = op.names[0]
        if name in self.memory:
            return
        memory = Memory(self.number(), op.kind, op.granules, stream.device, stream.number)
        if op.kind == "torch":
            self.reuse_waiting(stream)
            padding = 512 * op.pick(1, 300) if op.pick(2, 3) else 0
            memory.piece = self.caching.take(stream.number, stream.device, op.granules * GRANULE + padding, op.pick(3, 2) == 0)
            piece = memory.piece
            self.emit("act", memory.number, piece.segment, piece.offset, piece.size, op.granules)
        elif op.kind == "asy":
            self.order.enter(stream)
            self.emit("asy", memory.number, stream.number, op.granules, thread=self.thread_of(stream))
        else:
            self.emit(op.kind, memory.number, stream.device, op.granules)
        if op.kind in ("torch", "asy"):
            # Stream-ordered: others have to wait for where the stream is now.
            memory.write = stream.at()
            memory.last[stream.number] = stream.count
        if self.owners is not None:
            self.owners[memory] = self.thread
        self.memory[name] = memory

    def reuse_waiting(self, stream: Stream) -> None:
        """Blocks that others used come back once their events are over; now and then the host waits for them, as when memory is short."""
        left: list[Waiting] = []
        for waiting in self.caching.waiting:
            if waiting.piece.stream == stream.number:
                for event, clock in waiting.events:
                    if any(clock[i] > self.order.host[i] for i in range(len(clock))) and self.op.pick(9, 3) == 0:
                        self.host_wait_event(event, clock)
                if all(clock[i] <= self.order.host[i] for _, clock in waiting.events for i in range(len(clock))):
                    self.caching.give_back(waiting.piece)
                    continue
            left.append(waiting)
        self.caching.waiting = left

    def do_free(self, op: Operation, stream: Stream) -> None:
        memory = self.find(op.names[0])
        if memory is None:
            return
        if self.owners is not None and memory.piece is not None and self.owners.setdefault(memory.home, self.thread) != self.thread:
            return
        del self.memory[op.names[0]]
        if memory.piece is not None:
            self.free_block(memory, memory.piece)
        elif memory.kind == "asy":
            if stream.device != memory.device:
                stream = self.order.streams[memory.home]
            if self.owners is not None and self.owners.setdefault(stream.number, self.thread) != self.thread:
                self.memory[op.names[0]] = memory
                return
            self.order_behind(stream, list(memory.last.items()))
            self.order.enter(stream)
            self.emit("fra", memory.number, stream.number, thread=self.thread_of(stream))
        else:
            for point in list(memory.last.items()):
                if memory.on_host or self.order.streams[point[0]].device != memory.device:  # a free waits for its own device only
                    self.host_wait(point, op.pick(7, 100))
            self.emit("fre", memory.number)
        self.give_number_back(memory.number)

    def free_block(self, memory: Memory, piece: Piece) -> None:
        """As PyTorch does: events on the streams that it was lent to, then the report; it may be handed out again when they are over."""
        home = self.order.streams[memory.home]
        events = []
        for number, count in memory.last.items():
            known = self.order.covers(home, (number, count)) and (self.owners is not None or self.op.pick(11, 3) > 0)
            if number != memory.home and not known:
                events.append(self.record(self.order.streams[number]))
        self.emit("ina", memory.number)
        if events:
            self.caching.waiting.append(Waiting(piece, events))
        else:
            self.caching.give_back(piece)

    def do_kernel(self, op: Operation, stream: Stream) -> None:
        d = self.usable(op.names[0], stream)
        if d is None:
            return
        kind = op.kind
        read: list[tuple[Memory, int, int]] = []
        target: tuple[int, int] | None = None
        if kind in ("update", "sparse"):
            target = self.written_part(d, 0)
            kind = kind if target else "fill"
        elif kind in ("combine", "reduce", "gather"):
            for place, name in enumerate(op.names[1 : 3 if kind == "combine" else 2]):
                memory = self.usable(name, stream)
                found = self.written_part(memory, 4 + 4 * place) if memory is not None else None
                if memory is not None and found is not None:
                    read.append((memory, *found))
            if not read:
                kind = "fill"
            elif kind == "combine" and len(read) == 1:
                kind = "gather"
        first, count = target or self.part(0, d.granules, 12)
        self.use(stream, [memory for memory, _, _ in read] + ([d] if target else []), [d])
        for memory, at, granules in read:
            self.reads(memory, at, granules)
        if target:
            self.reads(d, first, count)
        self.writes(d, first, 0 if kind == "sparse" else count)  # some of what was written already
        sources = [number for memory, at, granules in read for number in (memory.number, at, granules)]
        sources += [0] * (6 - len(sources))
        salt = op.bits & 0xFFFFFFFF
        flops = FLOPS[op.pick(15, len(FLOPS))]
        where = (KINDS.index(kind), stream.number, d.number, first, count, *sources, salt, flops, op.pick(16, 2))
        self.emit("k", *where, thread=self.thread_of(stream))

    def do_set(self, op: Operation, stream: Stream) -> None:
        d = self.usable(op.names[0], stream)
        if d is None:
            return
        how = op.pick(1, 4)
        if how == SET_D32_SYNCHRONOUS and (self.capture or self.owners is not None):
            how = SET_CELLS
        if how == SET_D32_SYNCHRONOUS:
            stream = self.legacy(stream.device)
        first, count = self.part(0, d.granules, 2)
        if how < SET_CELLS:
            count = min(count, MOST_LINEAR)
        self.use(stream, [], [d])
        self.writes(d, first, count)
        where = (min(how, SET_CELLS), stream.number, d.number, first, count, op.bits & 0xFFFFFFFF)
        self.emit("ms", *where, thread=self.thread_of(stream))

    def legacy(self, device: int) -> Stream:
        return next(stream for stream in self.order.streams if stream.device == device and stream.kind == LEGACY)

    def do_copy(self, op: Operation, stream: Stream) -> None:
        d, s = self.find(op.names[0]), self.find(op.names[1])
        if d is None or s is None or d is s:
            return
        found = self.written_part(s, 0)
        if found is not None:
            self.copy(d, s, found, stream)

    def copy(self, d: Memory, s: Memory, found: tuple[int, int], stream: Stream) -> tuple[int, int] | None:
        """Where it came to lie in d: (first, count). None: it cannot be done here."""
        op = self.op
        gpu = [memory.device for memory in (d, s) if not memory.on_host]
        pageable = "hst" in (d.kind, s.kind)
        if (gpu and stream.device not in gpu) or (self.capture and (pageable or len(set(gpu)) > 1 or not gpu)) or not gpu:
            return None
        how = (COPY_ANY, COPY_TYPED, COPY_SYNCHRONOUS, COPY_CELLS, COPY_CELLS)[op.pick(4, 5)]
        if len(set(gpu)) > 1:
            how = COPY_PEER
        if how == COPY_SYNCHRONOUS and (self.capture or self.owners is not None):
            how = COPY_ANY
        if how == COPY_SYNCHRONOUS:
            stream = self.legacy(stream.device)
        first, count = found
        count = min(count, d.granules if how == COPY_CELLS else min(d.granules, MOST_LINEAR))
        to = op.pick(5, d.granules - count + 1)
        if s.kind == "hst":  # read by the call itself
            for point in [s.write] if s.write else []:
                self.host_wait(point, op.pick(6, 100))
        staged = s.kind == "hst" and how in (COPY_ANY, COPY_TYPED)
        self.use(stream, [] if staged else [s], [d])
        self.reads(s, first, count)
        self.writes(d, to, count)
        self.emit("cp", how, stream.number, d.number, to, s.number, first, count, thread=self.thread_of(stream))
        if how == COPY_SYNCHRONOUS and d.on_host:
            merge(self.order.host, stream.clock)
        return to, count

    def buffer(self, device: int) -> Memory:
        """A host memory of the thread, for what it looks at."""
        if self.thread not in self.buffers:
            kind = "pin" if self.thread == 0 else "hst"
            self.buffers[self.thread] = Memory(self.number(), kind, MOST_GRANULES, device, 0)
            self.emit(kind, self.buffers[self.thread].number, device, MOST_GRANULES)
        return self.buffers[self.thread]

    def do_look(self, op: Operation, stream: Stream) -> None:
        memory = self.find(op.names[0])
        found = self.written_part(memory, 0) if memory is not None else None
        if memory is not None and found is not None:
            self.look(memory, found, stream)

    def look(self, memory: Memory, found: tuple[int, int], stream: Stream) -> None:
        if memory.on_host or (memory.kind == "man" and self.op.pick(3, 2)):
            self.read(memory, *found)
        elif stream.device == memory.device:
            buffer = self.buffer(stream.device)
            place = self.copy(buffer, memory, found, stream)
            if place is not None:
                self.read(buffer, *place)

    def read(self, memory: Memory, first: int, count: int) -> None:
        if memory.write is not None:
            self.host_wait(memory.write, self.op.pick(8, 100))
        self.emit("hr", memory.number, first, count)

    def do_cpu(self, op: Operation, stream: Stream) -> None:
        memory = self.find(op.names[0])
        if memory is None or not (memory.on_host or memory.kind == "man"):
            return
        if op.pick(1, 2):
            found = self.written_part(memory, 2)
            if found is not None:
                self.read(memory, *found)
            return
        for point in list(memory.last.items()):
            self.host_wait(point, op.pick(7, 100))
        first, count = self.part(0, memory.granules, 2)
        self.writes(memory, first, count)
        self.emit("hw", memory.number, first, count, op.bits & 0xFFFFFFFF)

    def do_hint(self, op: Operation, stream: Stream) -> None:
        memory = self.find(op.names[0])
        if memory is None or memory.kind != "man" or memory.device != stream.device:
            return
        first, count = self.part(0, memory.granules, 2)
        where = 0 if op.pick(1, 2) else memory.device + 1
        if op.pick(5, 2):
            self.order.enter(stream)
            self.emit("pf", memory.number, first, count, where, stream.number, thread=self.thread_of(stream))
        else:
            self.emit("adv", memory.number, first, count, 1 + op.pick(6, 6), where)

    def do_sync(self, op: Operation, stream: Stream) -> None:
        if op.pick(1, 3) == 0 and self.owners is None:
            self.synchronise_device(stream.device)
        else:
            self.host_wait(stream.at(), op.pick(2, 84))

    def do_empty(self, op: Operation, stream: Stream) -> None:
        if self.owners is None:
            for device in range(self.program.devices if op.pick(1, 2) else 0):  # PyTorch waits first; a free waits anyway
                self.synchronise_device(device)
            self.caching.empty()

    # ---- graphs

    def do_graph(self, op: Operation, stream: Stream) -> None:
        candidates = [s for s in self.order.streams if s.device == stream.device and s.kind not in (LEGACY, PER_THREAD)]
        if self.owners is not None or op.names[0] in self.graphs or not candidates:
            return
        stream = candidates[op.pick(1, len(candidates))]
        capture = Capture(len(self.graphs), stream.device)
        other = candidates[op.pick(2, len(candidates))]
        other = stream if op.pick(3, 2) else other
        private = None
        if op.pick(4, 2):
            granules = 8 + op.pick(5, 64)
            private = Memory(self.number(), "torch", granules, stream.device, stream.number)
            private.piece = self.caching.take(stream.number, stream.device, granules * GRANULE, False)
            private.write = stream.at()
            private.last[stream.number] = stream.count
            capture.private.append(private)
        self.emit("gb", capture.number, stream.number)
        if private is not None and private.piece is not None:
            self.emit("act", private.number, private.piece.segment, private.piece.offset, private.piece.size, private.granules)
            self.memory["private"] = private
        if other is not stream:
            self.capture_edge(stream, other)
        self.capture = capture
        body = op.body
        if private is not None:
            names = [name for name, memory in self.memory.items() if not memory.on_host and memory.device == stream.device]
            fill = replace(op, verb="kernel", kind="fill", names=("private", "private", "private"), body=())
            out = replace(fill, kind="gather", names=(names[op.pick(6, len(names))], "private", "private"), bits=op.bits // 3)
            body = (fill, *body, out)
        for part in body:
            self.op = part
            # On the second stream only what has nothing to do with what the first does meanwhile.
            there = [self.memory[name] for name in part.names if name in self.memory]
            busy = {n: capture.touched.get(n, set()) & set(there) for n in (stream.number, other.number)}
            use_other = part.pick(30, 2) == 0 and not busy[stream.number]
            if other is not stream and busy[other.number] and not use_other:
                self.capture = None
                self.capture_edge(other, stream)
                self.capture_edge(stream, other)
                self.capture = capture
                capture.touched.clear()
            getattr(self, f"do_{part.verb}")(part, other if use_other else stream)
        self.capture = None
        if other is not stream:
            self.capture_edge(other, stream)
        if private is not None:
            del self.memory["private"]
            self.emit("ina", private.number, 1)
        self.emit("ge", capture.number, stream.number)
        self.op = op
        self.graphs[op.names[0]] = capture

    def capture_edge(self, before: Stream, after: Stream) -> None:
        event = self.new_event()
        self.emit("rec", event, before.number)
        self.emit("wai", after.number, event)

    def do_replay(self, op: Operation, stream: Stream) -> None:
        graph = self.graphs.get(op.names[0])
        if graph is None or self.owners is not None or stream.kind == PER_THREAD or stream.device != graph.device:
            return
        alive = {*self.memory.values(), *graph.private}
        memories = {*graph.needs, *graph.makes}
        if not memories <= alive or any(needed & ~memory.mask for memory, needed in graph.needs.items()):
            return
        self.use(stream, sorted(memories, key=lambda m: m.number), sorted(graph.makes, key=lambda m: m.number))
        for memory, made in graph.makes.items():
            if memory not in graph.private:
                memory.mask |= made
        self.emit("gl", graph.number, stream.number)

    # ---- threads at the same time

    def do_parallel(self, op: Operation, stream: Stream) -> None:
        """Each thread has its streams and its memory; what was before is before all of it."""
        if op.pick(1, 2):
            for device in range(self.program.devices):
                self.synchronise_device(device)
        else:
            events = [self.record(each) for each in self.order.streams if each.kind != LEGACY]
            for each in self.order.streams:
                if each.kind != LEGACY:
                    for event, clock in events:
                        self.wait(each, event, clock)
            for device in range(self.program.devices):
                self.host_wait(self.legacy(device).at(), 0)
        self.emit("par", thread=0)
        self.owners = {each.number: 0 for each in self.order.streams if each.kind == PER_THREAD}
        start = self.order.host.copy()
        hosts: dict[int, Clock] = {}
        for part in op.body:
            thread = min(part.thread, self.program.threads - 1)
            chosen = self.own_stream(part, thread)
            if part.verb in ("empty", "graph", "replay", "parallel") or chosen is None:
                continue
            self.order.host = hosts.setdefault(thread, start.copy())
            self.apply(replace(part, stream=chosen))
        self.owners = None
        self.order.host = start
        for host in hosts.values():
            merge(self.order.host, host)
        for number in self.quarantine:
            heapq.heappush(self.free_numbers, number)
        self.quarantine.clear()
        self.emit("end", thread=0)

    def own_stream(self, part: Operation, thread: int) -> int | None:
        """The stream of the operation, if the thread can have it, else another one."""
        assert self.owners is not None
        wanted = self.order.streams[part.stream % len(self.order.streams)]
        others = [s for s in self.order.streams if s.device == wanted.device]
        for stream in (wanted, *others):
            if stream.kind != LEGACY and self.owners.get(stream.number, thread) == thread:
                self.owners[stream.number] = thread
                return stream.number
        return None

    # ---- the end

    def end(self) -> None:
        """All that was written is looked at; then all of it is given back."""
        streams = self.order.streams
        for name, memory in sorted(self.memory.items()):
            for place, run in enumerate(runs(memory.mask)):
                self.thread = 0
                self.op = Operation("look", (name,), 0, (self.program.seed * 31 + memory.number * 7 + place + 1) * 0x5851F42D4C957F2D)
                mine = [s for s in streams if s.device == memory.device]
                first, count = run
                step = MOST_GRANULES
                for at in range(first, first + count, step):
                    self.look_whole(memory, at, min(step, first + count - at), mine[self.op.pick(40, len(mine))])
        for name in sorted(self.memory):
            self.thread = 0
            self.op = Operation("free", (name,), self.memory[name].home, self.program.seed * 0x5851F42D4C957F2D)
            self.do_free(self.op, streams[self.memory[name].home])
        for device in range(self.program.devices):
            self.synchronise_device(device)
        for graph in self.graphs.values():
            self.emit("gd", graph.number)
            for memory in graph.private:
                if memory.piece is not None:
                    self.caching.give_back(memory.piece)
        for waiting in self.caching.waiting:
            self.caching.give_back(waiting.piece)
        self.caching.waiting.clear()
        self.caching.empty()
        for memory in self.buffers.values():
            self.emit("fre", memory.number)
        for stream in streams:
            self.emit("sd", stream.number)

    def look_whole(self, memory: Memory, first: int, count: int, stream: Stream) -> None:
        if memory.on_host:
            self.read(memory, first, count)
            return
        buffer = self.buffer(stream.device)
        self.use(stream, [memory], [buffer])
        self.emit("cp", COPY_CELLS, stream.number, buffer.number, 0, memory.number, first, count, thread=self.thread_of(stream))
        self.read(buffer, 0, count)


def lower(program: Program, index: int = 0) -> str:
    """The executor's text; its results are told by `index`."""
    return "\n".join(Lowering(program, index).lower()) + "\n"
