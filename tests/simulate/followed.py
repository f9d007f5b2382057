"""Follows a program under LMS byte range by byte range: a second, naive account of what is where,
for comparison with the rewriting.

A tensor is known from the trace as it was, a place from the trace as it became; both have the same
launches in the same order. Content is a tensor and the number of its last write. What is copied
back must be what was copied out; no launch may touch a place where a copy that the host has not
waited for is under way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from deepum._core import lib

from deepum.core import Block, events
from deepum.trace import Trace, work
from deepum.trace.work import BY_ADDRESS, PERHAPS, WRITE, Work

_OWN = lib.DEEPUM_WORK_OF_HELPER
Content = tuple[int, int]  # tensor, number of its last write


@dataclass
class Followed:
    """What was seen. `order`: tensors as they were copied out; bytes of LMS's own copies."""

    peak_bytes: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
    order: list[int] = field(default_factory=list)
    launches: int = 0


def operands(trace: Trace) -> Iterator[list[tuple[int, int, int, int, int]]]:
    """Of each launch and copy, for each access: the tensor (numbered as handed out), offset in it,
    bytes, flags, size of the tensor.
    """
    stream = events(trace.events)
    event = next(stream, None)
    live: dict[int, dict[int, tuple[int, int]]] = {}
    count = 0
    for one in work.decode(trace.work):
        while event is not None and event.sequence <= one.sequence:
            if isinstance(event, Block):
                place = live.setdefault(event.slot, {})
                place.pop(event.offset, None)
                if event.kind == "block_active":
                    place[event.offset] = count, event.bytes
                    count += 1
            event = next(stream, None)
        if one.kind in (work.LAUNCH, work.COPY):
            found = []
            for access in one.accesses:
                for offset, (tensor, size) in sorted(live.get(access.slot, {}).items()):
                    if offset < access.offset + access.bytes and access.offset < offset + size:
                        low, high = (
                            max(offset, access.offset),
                            min(offset + size, access.offset + access.bytes),
                        )
                        found.append((tensor, low - offset, high - low, access.flags, size))
            yield found


def _meets(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


class _Follower:
    def __init__(self) -> None:
        self.seen = Followed()
        self.mapped: dict[int, int] = {}
        # None: copied back, from whom is not known yet.
        self.device: dict[tuple[int, int], Content | None] = {}
        self.host: dict[int, int] = {}  # by tensor: the write that was copied out
        self.written: dict[int, int] = {}
        self.under_way: dict[int, tuple[int, int]] = {}  # events' places
        self.last: tuple[int, int] | None = None

    def follow(self, one: Work) -> None:
        """LMS's own."""
        if one.kind == lib.DEEPUM_WORK_MAP:
            self.mapped[one.accesses[0].offset] = one.accesses[0].bytes
            self.seen.peak_bytes = max(self.seen.peak_bytes, sum(self.mapped.values()))
        elif one.kind == lib.DEEPUM_WORK_UNMAP:
            start = one.accesses[0].offset
            end = start + self.mapped.pop(start)
            assert not any(_meets(place, (start, end)) for place in self.under_way.values())
            self.device = {
                place: content
                for place, content in self.device.items()
                if not _meets(place, (start, end))
            }
        elif one.kind == work.COPY:
            self.copy(one)
        elif one.kind == lib.DEEPUM_WORK_RECORD and self.last is not None:
            self.under_way[one.event] = self.last
            self.last = None
        elif one.kind == lib.DEEPUM_WORK_SYNCHRONISE_EVENT:
            del self.under_way[one.event]

    def copy(self, one: Work) -> None:
        (access,) = one.accesses
        self.last = place = access.offset, access.offset + access.bytes
        self.inside(place)
        assert one.device_bytes == access.bytes
        if one.flags & work.TO_DEVICE:
            self.seen.bytes_in += access.bytes
            self.device = {
                known: content for known, content in self.device.items() if not _meets(known, place)
            }
            self.device[place] = None
        else:
            self.seen.bytes_out += access.bytes
            content = self.device[place]
            assert content is not None, "copied out again before anybody used it"
            self.seen.order.append(content[0])
            self.host[content[0]] = content[1]

    def inside(self, place: tuple[int, int]) -> None:
        assert any(
            start <= place[0] and place[1] <= start + size for start, size in self.mapped.items()
        ), "no memory there"

    def operation(self, one: Work, found: list[tuple[int, int, int, int, int]]) -> None:
        """The program's own launch or copy."""
        assert all(access.slot == BY_ADDRESS for access in one.accesses)
        assert [(a.bytes, a.flags) for a in one.accesses] == [
            (size, flags) for _, _, size, flags, _ in found
        ]
        self.seen.launches += 1
        places = []
        for access, (tensor, within, _, _, size) in zip(one.accesses, found, strict=True):
            place = access.offset - within, access.offset - within + size
            self.inside(place)
            assert not any(_meets(place, other) for other in self.under_way.values()), (
                "a copy is under way there"
            )
            if tensor not in self.written:  # its first use; whatever was there has to be dead
                self.device = {
                    known: content
                    for known, content in self.device.items()
                    if not _meets(known, place)
                }
                self.device[place] = tensor, 0
                self.written[tensor] = 0
            assert place in self.device, "its content is not on the device"
            if self.device[place] is None:
                self.device[place] = tensor, self.host.pop(tensor)
            assert self.device[place] == (tensor, self.written[tensor]), (
                "what is there is not what was last written"
            )
            places.append((place, tensor, access.flags))
        for place, tensor, flags in places:
            self.written[tensor] += bool(flags & (WRITE | PERHAPS))
            self.device[place] = tensor, self.written[tensor]


def follow(before: Trace, after: Trace) -> Followed:
    """Raises AssertionError where memory is not what the program left there."""
    follower = _Follower()
    launches = operands(before)
    for one in work.decode(after.work):
        own = one.flags & _OWN or one.kind in (lib.DEEPUM_WORK_MAP, lib.DEEPUM_WORK_UNMAP)
        if own or one.kind not in (work.LAUNCH, work.COPY):
            follower.follow(one)
        else:
            follower.operation(one, next(launches))
    assert next(launches, None) is None, "launches are missing"
    return follower.seen
