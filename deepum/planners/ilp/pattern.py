"""A pattern: the operations of an iteration that repeats, and how they access tensors (Lee, thesis,
SNU, sections 4.2 and 4.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from deepum.planners.iteration import Link


class Access(Enum):
    """READ: the thesis's RO; CHANGE: its RW; OVERWRITE: a write that needs nothing of what is
    there, RW in its program and write-only in its heuristic.
    """

    READ = "read"
    CHANGE = "change"
    OVERWRITE = "overwrite"

    @property
    def writes(self) -> bool:
        """Whether the content is another afterwards."""
        return self is not Access.READ


@dataclass(frozen=True)
class Stretch:
    """A tensor from one access to the next: operations `start` and `end`, up to a pattern later.
    death: operation before which the program gives the content up, start < death <= end; its memory
    is free from there. writer: operation that wrote it last, at most `start`, maybe of the pattern
    before; None: nothing writes it. fetches: the access at `end` needs the content.
    """

    tensor: int
    start: int
    end: int
    death: int | None
    writer: int | None
    fetches: bool

    @property
    def inner(self) -> range:
        """Operations between both accesses at which its memory is in use unless it is evicted."""
        return range(self.start + 1, self.end if self.death is None else self.death)


@dataclass(frozen=True)
class Tensor:
    """accesses: by operation. deaths: by the operation of the access behind which the program gives
    the content up, the operation before which it does, counted on into the next pattern.
    """

    bytes: int
    accesses: Mapping[int, Access]
    deaths: Mapping[int, int] = field(default_factory=dict)

    def dead(self, operations: int) -> frozenset[int]:
        """Operations at which it has no memory, the program having given it up."""
        found: set[int] = set()
        at = sorted(self.accesses)
        for start, death in self.deaths.items():
            later = [one for one in at if one > start]
            end = later[0] if later else at[0] + operations
            found.update(operation % operations for operation in range(death, end))
        return frozenset(found)


@dataclass(frozen=True)
class Pattern:
    """Durations in ns of its operations, where nothing is missing. reserved: bytes of the memory
    that something else has, by operation; empty: none. Raises ValueError for a tensor without an
    access, accesses of no operation, and deaths out of order.
    """

    durations_ns: tuple[float, ...]
    tensors: tuple[Tensor, ...]
    link: Link
    reserved: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.durations_ns)
        for number, one in enumerate(self.tensors):
            if not one.accesses or not all(0 <= at < count for at in one.accesses):
                raise ValueError(f"pattern: tensor {number} has an access of no operation, or none")
            for stretch in self.stretches(number):
                if stretch.death is not None and (
                    not stretch.start < stretch.death <= stretch.end or stretch.fetches
                ):
                    raise ValueError(f"pattern: tensor {number} is used after its content ended")

    def __len__(self) -> int:
        """Operations."""
        return len(self.durations_ns)

    @property
    def compute_ns(self) -> float:
        """Of all operations."""
        return sum(self.durations_ns)

    def room(self, operation: int) -> int:
        """Bytes for tensors at that operation."""
        return self.link.memory_bytes - (self.reserved[operation] if self.reserved else 0)

    def in_ns(self, number: int) -> float:
        """To swap a tensor in."""
        return self.tensors[number].bytes / self.link.in_gbps

    def out_ns(self, number: int) -> float:
        """To copy a tensor to the host."""
        return self.tensors[number].bytes / self.link.out_gbps

    def stretches(self, number: int) -> list[Stretch]:
        """Those of a tensor, in the order of their starts."""
        one, count = self.tensors[number], len(self)
        at = sorted(one.accesses)
        writes = [operation for operation in at if one.accesses[operation].writes]
        found = []
        for start, end in zip(at, [*at[1:], at[0] + count], strict=True):
            earlier = [write for write in writes if write <= start]
            writer = earlier[-1] if earlier else writes[-1] - count if writes else None
            fetches = one.accesses[end % count] is not Access.OVERWRITE
            found.append(Stretch(number, start, end, one.deaths.get(start), writer, fetches))
        return found
