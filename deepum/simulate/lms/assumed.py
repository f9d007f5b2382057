"""What a launch does of which only the event is known: as in the replay (replay_work.cpp,
default_work), all that it may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deepum._core import lib
from deepum.core import UM_BLOCK_BYTES, Allocate, BlockRange, Execute
from deepum.trace import work
from deepum.trace.work import READ, WRITE, Access, Work

_COPY, _MEMSET = int(lib.DEEPUM_EXECUTE_COPY), int(lib.DEEPUM_EXECUTE_MEMSET)
_ESTIMATED: int = lib.DEEPUM_WORK_ESTIMATED


class Assumed(Work):
    """Work whose accesses are whole UM blocks, with all that lies in them."""


def _accesses(
    ranges: tuple[BlockRange, ...], flags: int, allocated: Mapping[int, Allocate]
) -> Iterator[Access]:
    for where in ranges:
        place = allocated.get(where.slot)
        if place is not None:
            low = max(where.first * UM_BLOCK_BYTES - place.first_offset, 0)
            high = min(
                (where.first + where.count) * UM_BLOCK_BYTES - place.first_offset, place.bytes
            )
            if low < high:
                yield Access(where.slot, flags | _ESTIMATED, low, high - low)


def assumed(event: Execute, allocated: Mapping[int, Allocate]) -> Assumed:
    """The work of that launch. `allocated`: what lives, by slot."""
    declared = set(event.declared)
    accesses = (
        *_accesses(event.written, WRITE, allocated),
        *_accesses(event.read, READ, allocated),
        *(
            access
            for place, where in enumerate(event.unknown)
            for access in _accesses(
                (where,), READ if place in declared else READ | WRITE, allocated
            )
        ),
    )
    if not event.flags & _COPY:
        return Assumed(work.LAUNCH, event.sequence, accesses=accesses)
    to_device, from_device = not event.read, not event.written
    if to_device == from_device or event.flags & _MEMSET:
        return Assumed(work.LAUNCH, event.sequence, work.UNCOUNTED, accesses=accesses)
    size = sum(access.bytes for access in accesses)
    return Assumed(
        work.COPY,
        event.sequence,
        work.TO_DEVICE if to_device else 0,
        device_bytes=size,
        accesses=accesses,
    )
