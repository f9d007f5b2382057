"""From a random program to the executor's operations: what conflicts is ordered, and nothing is
read that was not written.

So a program means on the GPU what it means one operation after the other. How something is ordered
(an event, a wait of the host, nothing where the streams' rules suffice) is as random as the rest,
and no more is ordered than has to be.
"""

from __future__ import annotations

import heapq
from dataclasses import replace

from proof_memory import Capture, Memory, runs
from proof_order import LEGACY, PER_THREAD, Clock, Stream, merge
from proof_programs import MOST_GRANULES, Operation, Program
from proof_work import COPY_CELLS, GRANULE, Work


class Lowering(Work):
    """One program. `lines` are the executor's operations."""

    def lower(self) -> list[str]:
        for stream in self.streams.values():
            self.emit("sn", stream.number, stream.device, stream.kind)
        for operation in self.program.operations:
            self.apply(operation)
        self.end()
        return self.lines

    # ---- graphs

    def do_graph(self, op: Operation, stream: Stream) -> None:
        candidates = [
            s
            for s in self.streams.values()
            if s.device == stream.device and s.kind not in (LEGACY, PER_THREAD)
        ]
        if self.owners is not None or op.names[0] in self.graphs or not candidates:
            return
        stream = stream if stream in candidates else candidates[op.pick(1, len(candidates))]
        capture = Capture(len(self.graphs), stream.device)
        other = candidates[op.pick(2, len(candidates))]
        other = stream if op.pick(3, 2) else other
        private = None
        if op.pick(4, 4):
            granules = op.granules or 8 + op.pick(5, 64)
            private = Memory(self.number(), "torch", granules, stream.device, stream.number)
            private.piece = self.caching.take(
                stream.number, stream.device, granules * GRANULE, False
            )
            private.write = stream.at()
            private.last[stream.number] = stream.count
            capture.private.append(private)
        begun = len(self.lines)
        if len(op.names) > 1 and op.names[1] not in self.memory:
            self.do_new(replace(op, verb="new", names=op.names[1:]), stream)
        handed_out = (
            self.lines.pop()
            if len(self.lines) > begun and self.lines[-1].split()[1] == "act"
            else ""
        )
        self.emit("gb", capture.number, stream.number)
        self.lines += [handed_out] if handed_out else []
        if private is not None and private.piece is not None:
            self.emit(
                "act",
                private.number,
                private.piece.segment,
                private.piece.offset,
                private.piece.size,
                private.granules,
            )
            self.memory["private"] = private
        if other is not stream:
            self.capture_edge(stream, other)
        self.capture = capture
        body = op.body
        if private is not None:
            names = [
                name
                for name, memory in self.memory.items()
                if not memory.on_host and memory.device == stream.device
            ]
            fill = replace(
                op, verb="kernel", kind="fill", names=("private", "private", "private"), body=()
            )
            out = replace(
                fill,
                kind="gather",
                names=(names[op.pick(6, len(names))], "private", "private"),
                bits=op.bits // 3,
            )
            body = (fill, *body, out)
        for part in body:
            self.op = part
            # On the second stream only what has nothing to do with what the first does meanwhile.
            there = [self.memory[name] for name in part.names if name in self.memory]
            busy = {
                n: capture.touched.get(n, set()) & set(there) for n in (stream.number, other.number)
            }
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
        if (
            graph is None
            or self.owners is not None
            or stream.kind == PER_THREAD
            or stream.device != graph.device
        ):
            return
        alive = {*self.memory.values(), *graph.private}
        memories = {*graph.needs, *graph.makes}
        if not memories <= alive or any(
            needed & ~memory.mask for memory, needed in graph.needs.items()
        ):
            return
        self.use(
            stream,
            sorted(memories, key=lambda m: m.number),
            sorted(graph.makes, key=lambda m: m.number),
        )
        for memory, made in graph.makes.items():
            if memory not in graph.private:
                memory.mask |= made
        self.emit("gl", graph.number, stream.number)

    # ---- threads at the same time

    def do_parallel(self, op: Operation, stream: Stream) -> None:
        """Each thread has its streams and its memory; what was before is before all of it, but in a
        race: there each goes on by itself.
        """
        if op.kind == "race":
            pass
        elif op.pick(1, 2):
            for device in self.order.devices:
                self.synchronise_device(device)
        else:
            events = [
                self.record(each)
                for each in self.order.streams
                if each.kind != LEGACY and self.begun(each)
            ]
            together = [0] * len(self.order.streams)
            for _, clock in events:
                merge(together, clock)
            for each in self.streams.values():
                if each.kind != LEGACY:
                    self.wait_for_all(each, [event for event, _ in events], together)
            for device in self.order.devices:
                self.host_wait(self.legacy(device).at(), 0)
        self.emit("par", thread=0)
        self.owners = {each.number: 0 for each in self.order.streams if each.kind == PER_THREAD}
        self.before = [each.clock.copy() for each in self.order.streams]
        start = self.order.host.copy()
        hosts: dict[int, Clock] = {}
        for part in op.body:
            thread = min(part.thread, self.program.threads - 1)
            chosen = self.own_stream(part, thread)
            if part.verb in ("empty", "graph", "replay", "parallel") or chosen is None:
                continue
            self.order.host = hosts.setdefault(thread, start.copy())
            used = [self.memory[name] for name in part.names if name in self.memory]
            points = [
                point
                for memory in used
                for point in [*memory.last.items(), *([memory.write] if memory.write else [])]
            ]
            if op.kind == "race" and not all(
                self.order.covers(self.streams[chosen], point) for point in points
            ):
                continue
            self.apply(replace(part, stream=chosen))
        self.owners = None
        self.order.host = start
        for host in hosts.values():
            merge(self.order.host, host)
        for number in self.quarantine:
            heapq.heappush(self.free_numbers, number)
        self.quarantine.clear()
        self.emit("end", thread=0)

    def begun(self, stream: Stream) -> bool:
        """It lives or has lived."""
        return all(stream is not spare for _, spare in self.spare)

    def own_stream(self, part: Operation, thread: int) -> int | None:
        """The program's number of the stream of the operation, if the thread can have it, else of
        another one.
        """
        assert self.owners is not None
        wanted = part.stream % len(self.streams)
        others = [i for i, s in self.streams.items() if s.device == self.streams[wanted].device]
        for index in (wanted, *others):
            stream = self.streams[index]
            if stream.kind != LEGACY and self.owners.get(stream.number, thread) == thread:
                self.owners[stream.number] = thread
                return index
        return None

    # ---- the end

    def end(self) -> None:
        """All that was written is looked at; then all of it is given back."""
        streams = list(self.streams.values())
        for name, memory in sorted(self.memory.items()):
            for place, run in enumerate(runs(memory.mask)):
                self.thread = 0
                self.op = Operation(
                    "look",
                    (name,),
                    0,
                    (self.program.seed * 31 + memory.number * 7 + place + 1) * 0x5851F42D4C957F2D,
                )
                mine = [s for s in streams if s.device == memory.device]
                first, count = run
                step = MOST_GRANULES
                for at in range(first, first + count, step):
                    self.look_whole(
                        memory, at, min(step, first + count - at), mine[self.op.pick(40, len(mine))]
                    )
        for name in sorted(self.memory):
            self.thread = 0
            self.op = Operation(
                "free", (name,), self.memory[name].home, self.program.seed * 0x5851F42D4C957F2D
            )
            self.do_free(self.op, self.living(self.memory[name].home))
        for device in self.order.devices:
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
        self.emit(
            "cp",
            COPY_CELLS,
            stream.number,
            buffer.number,
            0,
            memory.number,
            first,
            count,
            thread=self.thread_of(stream),
        )
        self.read(buffer, 0, count)


def lower(program: Program, index: int = 0) -> str:
    """The executor's text; its results are told by `index`."""
    return "\n".join(Lowering(program, index).lower()) + "\n"
