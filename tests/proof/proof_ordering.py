"""The executor's lines, and their order: what conflicts is ordered by an event, a wait of the host,
or the streams' own rules.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from proof_caching import CachingAllocator
from proof_memory import Capture, Memory, bits, runs
from proof_order import BLOCKING, NON_BLOCKING, PER_THREAD, Clock, Order, Stream, merge
from proof_programs import Operation, Program

EVENTS = 4096
MOST_RENEWED = 32


def renews_apart(op: Operation) -> bool:
    """What the stream that takes the place does is in no order with what the one that ended has
    under way.
    """
    return op.verb == "renew" and op.pick(3, 3) == 0


class Ordering:
    """What a program became so far. `lines` are the executor's operations."""

    def __init__(self, program: Program, index: int) -> None:
        self.program = program
        # A stream that is renewed apart from the one before it is another one, though the program
        # calls it by the same number.
        apart = [op.stream % len(program.streams) for op in program.operations if renews_apart(op)][
            :MOST_RENEWED
        ]
        self.order = Order([*program.streams, *(program.streams[index] for index in apart)])
        # The living ones, by the program's number.
        self.streams = {i: self.order.streams[i] for i in range(len(program.streams))}
        self.spare = list(zip(apart, self.order.streams[len(program.streams) :], strict=True))
        # By number of a stream that ended: the event behind all of it.
        self.ended: dict[int, tuple[int, Clock]] = {}
        self.lines: list[str] = []
        self.memory: dict[str, Memory] = {}
        self.buffers: dict[int, Memory] = {}
        self.graphs: dict[str, Capture] = {}
        self.segments: dict[int, int] = {}
        self.caching = CachingAllocator(self.new_segment, self.end_segment, program.back)
        self.silent = program.flavour == "silent"
        self.handed_out = 0
        self.thread = 0
        self.op = Operation("start")
        self.capture: Capture | None = None
        # In a parallel stretch: who has a stream or a memory,.
        self.owners: dict[object, int] | None = None
        self.before: list[Clock] = []  # and what was on the streams when it began
        self.free_numbers: list[int] = []
        self.quarantine: list[int] = []
        self.numbers = 0
        self.event = 0
        # By event: the device of the stream that it was recorded on last.
        self.recorded_on: dict[int, int] = {}
        self.valued: dict[int, int] = {}  # of flavour `values`, by event: what the stream writes
        self.emit(
            "program", index, program.place, program.threads, program.devices, int(program.resets)
        )

    # ---- what the lines have in common

    def emit(self, name: str, *numbers: int, thread: int | None = None) -> None:
        self.lines.append(
            f"{self.thread if thread is None else thread} {name} {' '.join(map(str, numbers))}"
        )

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
        while any(self.event == kept for kept, _ in self.ended.values()):
            self.event = (self.event + 1) % EVENTS
        return self.event

    def new_segment(self, device: int, size: int) -> int:
        number = self.number()
        self.emit("seg", number, device, size, int(self.program.flavour == "managed"))
        self.segments[number] = device
        return number

    def end_segment(self, number: int) -> None:
        self.emit("fre", number)
        del self.segments[number]
        self.give_number_back(number)

    # ---- order

    def record(self, stream: Stream) -> tuple[int, Clock]:
        if stream.number in self.ended:
            return self.ended[stream.number]
        if self.out_of_reach(stream):
            self.wait_from_afar(stream)
            reached = next(
                each
                for each in self.streams.values()
                if each.device == stream.device and each.kind in (BLOCKING, NON_BLOCKING)
            )
            event, clock = self.record(reached)
            merge(clock, self.before[stream.number])
            return event, clock
        event = self.new_event()
        self.emit("rec", event, stream.number, thread=self.thread_of(stream))
        self.recorded_on[event] = stream.device
        if self.program.flavour == "values":
            self.valued[event] = self.valued.get(event, 0) + 1
            self.emit("wv", event, stream.number, self.valued[event], thread=self.thread_of(stream))
        return event, self.before[stream.number].copy() if self.of_another(
            stream
        ) else self.order.record(stream)

    def of_another(self, stream: Stream) -> bool:
        """In a parallel stretch: another thread launches on it meanwhile, so that only what was
        there before is known to come first.
        """
        return (
            self.owners is not None and self.owners.get(stream.number, self.thread) != self.thread
        )

    def out_of_reach(self, stream: Stream) -> bool:
        """In a parallel stretch: the default stream of another thread, which alone could record an
        event on it or wait for it, and does so at another time than this one.
        """
        return self.owners is not None and self.thread_of(stream) != self.thread

    def wait_from_afar(self, stream: Stream) -> None:
        """What was on it before the stretch is over."""
        self.emit("csy", stream.device)
        merge(self.order.host, self.before[stream.number])

    def wait(self, stream: Stream, event: int, clock: Clock) -> None:
        self.emit_wait(stream, event)
        self.order.wait(stream, clock)

    def wait_for_all(self, stream: Stream, events: list[int], clock: Clock) -> None:
        """For each of them; `clock` is what is before them all together."""
        for event in events:
            self.emit_wait(stream, event)
        if events:
            self.order.wait_for_all(stream, len(events), clock)

    def emit_wait(self, stream: Stream, event: int) -> None:
        by_value = event in self.valued and self.op.pick(29, 2) == 0
        number = (self.valued[event],) if by_value else ()
        self.emit(
            "vw" if by_value else "wai",
            stream.number,
            event,
            *number,
            thread=self.thread_of(stream),
        )

    def host_wait_event(self, event: int, clock: Clock) -> None:
        self.emit("eqy" if self.op.pick(31, 3) == 0 else "esy", event)
        merge(self.order.host, clock)

    def host_wait(self, point: tuple[int, int], roll: int) -> None:
        """The host waits until that point is over."""
        if self.order.host_covers(point):
            return
        stream = self.order.streams[point[0]]
        if self.out_of_reach(stream) and stream.number not in self.ended:
            self.wait_from_afar(stream)
        elif roll < 50 and stream.number not in self.ended:
            self.emit("ssy", stream.number, thread=self.thread_of(stream))
            merge(
                self.order.host,
                self.before[stream.number] if self.of_another(stream) else stream.clock,
            )
        elif roll < 85 or self.owners is not None:
            self.host_wait_event(*self.record(stream))
        else:
            self.synchronise_device(stream.device)

    def synchronise_device(self, device: int) -> None:
        self.emit("csy", device)
        for stream in self.order.streams:
            if stream.device == device:
                merge(self.order.host, stream.clock)

    def order_behind(
        self, stream: Stream, points: Iterable[tuple[int, int]], joins: bool = True
    ) -> None:
        """joins: as in Order.enter, of what comes next."""
        for place, point in enumerate(points):
            if self.order.covers(stream, point) if joins else self.order.follows(stream, point):
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
