"""What planners know of a program that repeats: one iteration, launch by launch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Event:
    """A use of an item by a launch, or the end of its content before a launch (`dies`).

    reads: it needs the content; a use that does not overwrites all of it. writes: it changes it.
    """

    launch: int
    reads: bool = False
    writes: bool = False
    dies: bool = False

    @classmethod
    def death(cls, launch: int) -> Event:
        """The program gives the content up before that launch."""
        return cls(launch, dies=True)


@dataclass(frozen=True)
class Item:
    """Content that is moved whole. events: in the order of launches, a death before the use at the
    same launch. tensor_bytes: of all that is used with it, of which it may be a part.
    """

    bytes: int
    events: tuple[Event, ...]
    tensor_bytes: int = 0


@dataclass(frozen=True)
class Link:
    """The device's memory in bytes, and the link's rates in GB/s (10^9), which are bytes a ns.

    copies_early: what will leave is copied right after it was written, and stays on the device
    until then; else it is copied when it leaves, as unified memory moves it.
    """

    memory_bytes: int
    in_gbps: float
    out_gbps: float
    copies_early: bool = True


@dataclass(frozen=True)
class Iteration:
    """launch_ns: what each launch takes where nothing is missing."""

    launch_ns: tuple[float, ...]
    items: tuple[Item, ...]

    @property
    def compute_ns(self) -> float:
        """Of all launches."""
        return sum(self.launch_ns)


def merged(pieces: Iterable[tuple[int, Sequence[Event]]], most_bytes: int) -> tuple[Item, ...]:
    """Pieces of memory, (bytes, events) each, as items: those with the same events are one, cut
    evenly so that none has more than `most_bytes`. Pieces without a use are left out.
    """
    alike: dict[tuple[Event, ...], int] = defaultdict(int)
    for size, events in pieces:
        in_order = tuple(sorted(events, key=lambda event: (event.launch, not event.dies)))
        if any(not event.dies for event in in_order):
            alike[in_order] += size
    items = []
    for events, size in alike.items():
        parts = -(-size // most_bytes)
        for part in range(parts):
            mine = size * (part + 1) // parts - size * part // parts
            items.append(Item(mine, events, size))
    return tuple(items)
