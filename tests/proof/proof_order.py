"""What is ordered before what: vector clocks of the streams and of the host, by the rules of CUDA's
streams and events.
"""

from __future__ import annotations

from dataclasses import dataclass, field

BLOCKING, NON_BLOCKING, LEGACY, PER_THREAD = range(4)  # enum stream_kind of executor.h
Clock = list[int]  # by stream: so many of its operations are complete


def merge(into: Clock, other: Clock) -> None:
    """What is before `other` is before `into`."""
    for i, count in enumerate(other):
        if count > into[i]:
            into[i] = count


@dataclass(slots=True)
class Stream:
    """A stream: its number, device and kind, and what its next operation comes after."""

    number: int
    device: int
    kind: int
    clock: Clock = field(default_factory=list)

    @property
    def count(self) -> int:
        """Operations so far."""
        return self.clock[self.number]

    def at(self) -> tuple[int, int]:
        """This point of it, for `Order.covers`."""
        return self.number, self.count


class Order:
    """The streams and the host's threads. `host` is what the calling thread has waited for; each
    operation comes after that.
    """

    def __init__(self, kinds: list[tuple[int, int]]) -> None:
        """Streams of (device, kind)."""
        self.streams = [
            Stream(i, device, kind, [0] * len(kinds)) for i, (device, kind) in enumerate(kinds)
        ]
        self.host: Clock = [0] * len(kinds)

        self.devices = sorted({device for device, _ in kinds})
        self._joins = [
            [other for other in self.streams if self._join(stream, other)]
            for stream in self.streams
        ]

    @staticmethod
    def _join(stream: Stream, other: Stream) -> bool:
        """The default stream's rule: it and the blocking streams of its device wait for
        each other.
        """
        if (
            stream.device != other.device
            or stream is other
            or NON_BLOCKING in (stream.kind, other.kind)
        ):
            return False
        return LEGACY in (stream.kind, other.kind)

    def enter(self, stream: Stream, joins: bool = True) -> None:
        """An operation, an event or a wait is put on the stream: it is one more.

        joins: by the default stream's rule it waits for others. Nobody says so of stream-ordered
        allocations.
        """
        clock = stream.clock
        merge(clock, self.host)
        for other in self._joins[stream.number] if joins else ():
            merge(clock, other.clock)
        clock[stream.number] += 1

    def end(self, stream: Stream) -> None:
        """The stream is destroyed. Its work goes on, and the host may wait for it; that the default
        stream still does is nowhere said.
        """
        for joins in self._joins:
            if stream in joins:
                joins.remove(stream)

    def covers(self, stream: Stream, point: tuple[int, int]) -> bool:
        """What is put on the stream next comes after that point."""
        number, count = point
        if number == stream.number or stream.clock[number] >= count or self.host[number] >= count:
            return True
        return any(other.clock[number] >= count for other in self._joins[stream.number])

    def follows(self, stream: Stream, point: tuple[int, int]) -> bool:
        """What is on the stream already comes after that point: a join that its next operation
        would bring does not count.
        """
        number, count = point
        return (
            number == stream.number or stream.clock[number] >= count or self.host[number] >= count
        )

    def host_covers(self, point: tuple[int, int]) -> bool:
        """The thread has waited for it."""
        return self.host[point[0]] >= point[1]

    def record(self, stream: Stream) -> Clock:
        """An event: what is before it."""
        self.enter(stream)
        return stream.clock.copy()

    def wait(self, stream: Stream, event: Clock) -> None:
        """The stream waits for the event."""
        self.enter(stream)
        merge(stream.clock, event)

    def wait_for_all(self, stream: Stream, events: int, clock: Clock) -> None:
        """The stream waits for so many events, one after the other, before all of which together
        `clock` comes.
        """
        self.wait(stream, clock)
        stream.clock[stream.number] += events - 1
