"""Operations on memory: allocations, kernels, copies, what the CPU reads and writes."""

from __future__ import annotations

from proof_caching import Piece, Waiting
from proof_memory import Memory
from proof_order import BLOCKING, LEGACY, NON_BLOCKING, Stream, merge
from proof_ordering import Ordering, renews_apart
from proof_programs import GPUS, KINDS, MOST_GRANULES, Operation

GRANULE = 1 << 16
MOST_LINEAR = 6  # granules that are copied or set as a whole: it takes the host's time
COPY_ANY, COPY_TYPED, COPY_SYNCHRONOUS, COPY_CELLS, COPY_PEER = range(5)  # enum copy_how
SET_D32, SET_D32_SYNCHRONOUS, SET_CELLS = range(3)  # enum set_how
NAP = 3000  # microseconds
# Up to a third of a millisecond on a V100, the time of two UM blocks over its link.
FLOPS = (0, 0, 10**7, 10**8, 10**9, 5 * 10**9)


class Work(Ordering):
    """One operation after the other."""

    def apply(self, operation: Operation) -> None:
        self.op = operation
        self.thread = min(operation.thread, self.program.threads - 1)
        stream = self.streams[operation.stream % len(self.streams)]
        getattr(self, f"do_{operation.verb}")(operation, stream)

    def living(self, number: int) -> Stream:
        """The stream of that number, or one of its device that lives."""
        stream = self.order.streams[number]
        return (
            stream
            if stream.number not in self.ended
            else next(s for s in self.streams.values() if s.device == stream.device)
        )

    def find(self, name: str) -> Memory | None:
        """The memory of that name; None: there is none (here, now)."""
        memory = self.memory.get(name)
        if memory is None or self.owners is None:
            return memory
        return memory if self.owners.setdefault(memory, self.thread) == self.thread else None

    def usable(self, name: str, stream: Stream) -> Memory | None:
        """As find, for kernels on the stream."""
        memory = self.memory.get(name)
        return (
            self.find(name)
            if memory is not None and not memory.on_host and memory.device == stream.device
            else None
        )

    def do_new(self, op: Operation, stream: Stream) -> None:
        name = op.names[0]
        if name in self.memory:
            return
        memory = Memory(self.number(), op.kind, op.granules, stream.device, stream.number)
        if op.kind == "torch":
            self.reuse_waiting(stream)
            padding = 512 * op.pick(1, 300) if op.pick(2, 3) else 0
            memory.piece = self.caching.take(
                stream.number, stream.device, op.granules * GRANULE + padding, op.pick(3, 2) == 0
            )
            piece = memory.piece
            # With the first one the totals disagree from the start.
            silent = self.silent and (not self.handed_out or op.pick(5, 2) == 0)
            self.handed_out += 1
            self.emit(
                "act",
                memory.number,
                piece.segment,
                piece.offset,
                piece.size,
                op.granules,
                int(silent),
            )
        elif op.kind == "asy":
            self.order.enter(stream, joins=False)
            self.emit(
                "asy", memory.number, stream.number, op.granules, thread=self.thread_of(stream)
            )
        else:
            self.emit(op.kind, memory.number, stream.device, op.granules)
        if op.kind == "torch" and self.program.flavour == "managed":
            # So that the CPU, which no stream orders, has something to wait for.
            self.record(stream)
        if op.kind in ("torch", "asy"):
            # Stream-ordered: others have to wait for where the stream is now.
            memory.write = stream.at()
            memory.last[stream.number] = stream.count
        if self.owners is not None:
            self.owners[memory] = self.thread
        self.memory[name] = memory

    def reuse_waiting(self, stream: Stream) -> None:
        """Blocks that others used come back once their events are over; now and then the host waits
        for them, as when memory is short.
        """
        left: list[Waiting] = []
        for waiting in self.caching.waiting:
            if waiting.piece.stream == stream.number:
                for event, clock in waiting.events:
                    if (
                        any(clock[i] > self.order.host[i] for i in range(len(clock)))
                        and self.op.pick(9, 3) == 0
                    ):
                        self.host_wait_event(event, clock)
                if all(
                    clock[i] <= self.order.host[i]
                    for _, clock in waiting.events
                    for i in range(len(clock))
                ):
                    self.caching.give_back(waiting.piece)
                    continue
            left.append(waiting)
        self.caching.waiting = left

    def do_free(self, op: Operation, stream: Stream) -> None:
        memory = self.find(op.names[0])
        if memory is None:
            return
        if (
            self.owners is not None
            and memory.piece is not None
            and self.owners.setdefault(memory.home, self.thread) != self.thread
        ):
            return
        del self.memory[op.names[0]]
        if memory.piece is not None:
            self.free_block(memory, memory.piece)
        elif memory.kind == "asy":
            if stream.device != memory.device:
                stream = self.living(memory.home)
            if (
                self.owners is not None
                and self.owners.setdefault(stream.number, self.thread) != self.thread
            ):
                self.memory[op.names[0]] = memory
                return
            self.order_behind(stream, list(memory.last.items()), joins=False)
            self.order.enter(stream, joins=False)
            self.emit("fra", memory.number, stream.number, thread=self.thread_of(stream))
        else:
            for point in list(memory.last.items()):
                # A free waits for its own device only, and who knows whether for streams that have
                # ended.
                if (
                    memory.on_host
                    or self.order.streams[point[0]].device != memory.device
                    or point[0] in self.ended
                ):
                    self.host_wait(point, op.pick(7, 100))
            self.emit("fre", memory.number)
        self.give_number_back(memory.number)

    def free_block(self, memory: Memory, piece: Piece) -> None:
        """As PyTorch does: events on the streams that it was lent to, then the report; it may be
        handed out again when they are over.
        """
        home = self.order.streams[memory.home]
        events = []
        for number, count in memory.last.items():
            known = self.order.follows(home, (number, count)) and (
                self.owners is not None or self.op.pick(11, 3) > 0
            )
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
        sources = [
            number for memory, at, granules in read for number in (memory.number, at, granules)
        ]
        sources += [0] * (6 - len(sources))
        salt = op.bits & 0xFFFFFFFF
        flops = FLOPS[-1] if op.heavy else FLOPS[op.pick(15, len(FLOPS))]
        where = (
            KINDS.index(kind),
            stream.number,
            d.number,
            first,
            count,
            *sources,
            salt,
            flops,
            op.pick(16, 2),
            self.seems(d),
        )
        self.emit("k", *where, thread=self.thread_of(stream))

    def seems(self, d: Memory) -> int:
        """What the arguments of a kernel seem to be: 0: what they are; 1: no addresses; from 2 on:
        that of another memory + 2.
        """
        if not self.op.hidden or self.op.pick(17, 2) or self.owners is not None:
            return int(self.op.hidden)
        others = [
            memory
            for memory in self.memory.values()
            if memory is not d and not memory.on_host and memory.device == d.device
        ]
        return 2 + others[self.op.pick(18, len(others))].number if others else 1

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
        return next(
            stream
            for stream in self.order.streams
            if stream.device == device and stream.kind == LEGACY
        )

    def do_copy(self, op: Operation, stream: Stream) -> None:
        d, s = self.find(op.names[0]), self.find(op.names[1])
        if d is None or s is None or d is s:
            return
        found = self.written_part(s, 0)
        if found is not None:
            self.copy(d, s, found, stream)

    def copy(
        self, d: Memory, s: Memory, found: tuple[int, int], stream: Stream
    ) -> tuple[int, int] | None:
        """Where it came to lie in d: (first, count). None: it cannot be done here."""
        op = self.op
        gpu = [memory.device for memory in (d, s) if not memory.on_host]
        pageable = "hst" in (d.kind, s.kind)
        if (
            (gpu and stream.device not in gpu)
            or (self.capture and (pageable or len(set(gpu)) > 1 or not gpu))
            or not gpu
        ):
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
        self.emit(
            "cp",
            how,
            stream.number,
            d.number,
            to,
            s.number,
            first,
            count,
            thread=self.thread_of(stream),
        )
        if how == COPY_SYNCHRONOUS and d.on_host:
            merge(self.order.host, stream.clock)
        return to, count

    def buffer(self, device: int) -> Memory:
        """A host memory of the thread, for what it looks at."""
        if self.thread not in self.buffers:
            kind = "pin" if self.thread == 0 else "hst"
            # It outlives further contexts.
            self.buffers[self.thread] = Memory(self.number(), kind, MOST_GRANULES, device % GPUS, 0)
            self.emit(kind, self.buffers[self.thread].number, device % GPUS, MOST_GRANULES)
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
        ours = self.program.flavour == "managed" and memory is not None and memory.kind == "torch"
        if memory is None or not (memory.on_host or memory.kind == "man" or ours):
            return
        if op.pick(1, 2):
            found = self.written_part(memory, 2)
            if found is not None:
                self.read(memory, *found)
            return
        first, count = self.part(0, memory.granules, 2)
        # On the stream, by a host function.
        if not ours and stream.device == memory.device and op.pick(9, 2) == 0:
            self.use(stream, [], [memory])
            self.writes(memory, first, count)
            self.emit(
                "hf",
                stream.number,
                memory.number,
                first,
                count,
                op.bits & 0xFFFFFFFF,
                thread=self.thread_of(stream),
            )
            return
        for point in list(memory.last.items()):
            self.host_wait(point, op.pick(7, 100))
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
            self.emit(
                "pf",
                memory.number,
                first,
                count,
                where,
                stream.number,
                thread=self.thread_of(stream),
            )
        else:
            self.emit("adv", memory.number, first, count, 1 + op.pick(6, 6), where)

    def do_sync(self, op: Operation, stream: Stream) -> None:
        if op.pick(1, 3) == 0 and self.owners is None:
            self.synchronise_device(stream.device)
        else:
            self.host_wait(stream.at(), op.pick(2, 84))

    def do_renew(self, op: Operation, stream: Stream) -> None:
        """The stream ends and another takes its place, behind what it did or apart from it."""
        if (
            self.owners is not None
            or self.capture is not None
            or stream.kind not in (BLOCKING, NON_BLOCKING)
        ):
            return
        index = op.stream % len(self.streams)
        place = (
            next((i for i, (of, _) in enumerate(self.spare) if of == index), None)
            if renews_apart(op)
            else None
        )
        event = None if place is None and op.pick(1, 3) == 0 else self.record(stream)
        if event is None:
            self.host_wait(stream.at(), 0)
        elsewhere = (
            self.order.devices[op.pick(4, len(self.order.devices))]
            if op.pick(2, 3) == 0
            else stream.device
        )
        self.emit("sd", stream.number, elsewhere + 1)
        if place is not None and event is not None:
            self.order.end(stream)
            self.ended[stream.number] = event
            _, stream = self.spare.pop(place)
            self.streams[index] = stream
        self.emit("sn", stream.number, stream.device, stream.kind)
        if event is not None and place is None:
            self.wait(stream, *event)

    def do_context(self, op: Operation, stream: Stream) -> None:
        """A context comes and ends at once; or that of the stream ends, with all that is in it, and
        its streams come again.
        """
        device = stream.device
        if self.owners is not None or self.capture is not None or self.graphs:
            return
        if op.kind == "short" or device < GPUS:
            self.emit("cm", device)
            return
        self.synchronise_device(device)
        for name in [name for name, memory in self.memory.items() if memory.device == device]:
            self.op = Operation("free", (name,), self.memory[name].home, op.bits)
            self.do_free(self.op, self.order.streams[self.memory[name].home])
        self.op = op
        for waiting in [
            waiting for waiting in self.caching.waiting if waiting.piece.device == device
        ]:
            for event, clock in waiting.events:
                self.host_wait_event(event, clock)
            self.caching.give_back(waiting.piece)
            self.caching.waiting.remove(waiting)
        # Events end with the context that recorded them, and they are over.
        for waiting in self.caching.waiting:
            waiting.events = [
                each for each in waiting.events if self.recorded_on[each[0]] != device
            ]
        self.caching.empty(device)
        self.synchronise_device(device)
        streams = [each for each in self.streams.values() if each.device == device]
        for each in streams:
            self.emit("sd", each.number, 0)
        self.emit("ce", device)
        for each in streams:
            self.emit("sn", each.number, device, each.kind)

    def do_fork(self, op: Operation, stream: Stream) -> None:
        """A child that never uses CUDA: it ends at once, or runs on for a while, or frees tensors
        that it got from its parent.
        """
        if self.owners is None and self.capture is None:
            self.emit("frk", op.pick(1, 4), 1000 * op.pick(2, 4))

    def do_nap(self, op: Operation, stream: Stream) -> None:
        """Out of lock-step the program would have its memory back before anybody has decided to
        drop it.
        """
        self.emit("nap", NAP)

    def do_empty(self, op: Operation, stream: Stream) -> None:
        if self.owners is None:
            # PyTorch waits first; a free waits anyway.
            for device in self.order.devices if op.pick(1, 2) else ():
                self.synchronise_device(device)
            for number in self.ended:
                self.host_wait((number, self.order.streams[number].count), 60)
            self.caching.empty()
