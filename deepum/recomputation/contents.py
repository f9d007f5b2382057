"""A program as storages and operations: what its launches read and make of PyTorch's blocks.

A *storage* is a PyTorch block from hand-out to give-back. Each launch that writes to it makes a new
*version* of its content; version 0 is what is there at hand-out, which nobody needs. The *recipe*
of a version are the launches that made it, from the last one that overwrote all that was there.
What these read of other storages they have to find at the versions that they found then.

Launches that draw random numbers count as repeatable: the generator's state is put back for them,
as `torch.utils.checkpoint` does. Copies from the host and scatters that add are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from deepum.core import BlockRange, Event, Execute
from deepum.trace.work import Access, Work

# Reads, writes: of a launch, in a storage, from the first byte to the one behind the last.
Touch = tuple[int, int, bool, bool]


@dataclass(slots=True, eq=False)
class Storage:
    """`makers`: the launch that made each version, from version 1 on. `bases`: by version, how many
    of the makers its recipe leaves out. `readers`: launches that need some version of it. `step`:
    in which it was handed out, from 0. `touched`: bytes from its first to the last that was ever
    touched.
    """

    number: int
    bytes: int
    step: int
    makers: list[Operation] = field(default_factory=list)
    bases: list[int] = field(default_factory=lambda: [0])
    readers: list[Operation] = field(default_factory=list)
    touched: int = 0

    @property
    def version(self) -> int:
        """The latest that was made, by the launches that were read so far."""
        return len(self.makers)

    def recipe(self, version: int) -> Sequence[Operation]:
        """The launches that make that version in an empty block, in order."""
        return self.makers[self.bases[version] : version]


@dataclass(frozen=True, slots=True)
class Use:
    """What a launch does with a storage: the version that it needs (`reads`, None: nothing of what
    was there), and the version that it makes (`makes`, None: it does not write). Neither: the
    driver is told of the memory, and nothing of it is touched.
    """

    storage: Storage
    reads: int | None
    makes: int | None


@dataclass(slots=True, eq=False)
class Operation:
    """A launch or copy, in the step of that number. `accesses`: of what the storage with that place
    in `uses` has, by its offset there; None: of other memory, as they stand. `in_event`: the
    storages that its event names, by place in `uses`, in its order; `others`: the UM blocks of
    other memory that it names. `ns`: with all of its memory on the device. `repeatable`: it
    computes the same from the same, and has no other effect.
    """

    event: Execute
    work: Work
    step: int
    uses: tuple[Use, ...]
    accesses: tuple[tuple[int | None, Access], ...]
    in_event: tuple[int, ...]
    others: tuple[BlockRange, ...]
    ns: int
    repeatable: bool

    def inputs(self, making: Storage) -> Iterable[tuple[Storage, int]] | None:
        """What it needs to be there to make `making` again; None where it cannot be launched for
        that: it does not compute the same, or it changes something else in place.
        """
        if not self.repeatable:
            return None
        needed = []
        for use in self.uses:
            if use.reads is not None and use.storage is not making:
                if use.makes is not None:
                    return None
                needed.append((use.storage, use.reads))
        return needed


@dataclass(frozen=True, slots=True)
class HandOut:
    """PyTorch hands a block out."""

    storage: Storage


@dataclass(frozen=True, slots=True)
class GiveBack:
    """The program gives it back."""

    storage: Storage


@dataclass(frozen=True, slots=True)
class Other:
    """An event that has nothing to do with PyTorch's blocks, and the body of its record."""

    event: Event
    kind: int
    body: bytes


Item = HandOut | GiveBack | Operation | Other | Work


def looking_ahead(items: Iterable[Item]) -> Iterator[tuple[Item, Operation | None]]:
    """Each with the launch that comes next, where it is a hand-out."""
    waiting: list[Item] = []
    for item in items:
        waiting.append(item)
        if isinstance(item, Operation):
            yield from ((one, item) for one in waiting)
            waiting = []
    yield from ((one, None) for one in waiting)


def used(storage: Storage, touches: Sequence[Touch]) -> Use:
    """What a launch does that touches those bytes of a storage, which knows of them then."""
    version = storage.version
    writes = any(one[3] for one in touches)
    reads = any(one[2] for one in touches)
    end = max((one[1] for one in touches), default=0)
    makes = None
    if writes:
        # What is written in part only is needed for the rest.
        whole = _covered(touches) >= max(storage.touched, end)
        if not whole and version:
            reads = True
        makes = version + 1
        storage.bases.append(storage.bases[version] if reads and version else version)
    storage.touched = max(storage.touched, end)
    return Use(storage, version if reads and version else None, makes)


def _covered(touches: Sequence[Touch]) -> int:
    """Bytes from the first on that are written without a gap."""
    covered = 0
    for start, end, _, writes in sorted(touches):
        if writes and start <= covered:
            covered = max(covered, end)
    return covered
