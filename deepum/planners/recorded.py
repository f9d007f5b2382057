"""The iteration that a core recorded (`deepum.core.Recording`), for planners: UM blocks that are
used alike are one item, and what each item is called at each launch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepum._core import lib
from deepum.core import UM_BLOCK_BYTES, Recording
from deepum.planners.iteration import Event, Item, Iteration

ITEM_BLOCKS = 8  # of an item at most
_LAUNCH = np.dtype([("hash", "<u8"), ("launch", "<u8")])
_USE = np.dtype(
    [
        ("name", "<u8"),
        ("launch", "<u4"),
        ("slot", "<u4"),
        ("block", "<u4"),
        ("first", "<u4"),
        ("count", "<u4"),
        ("kind", "u1"),
        ("reserved", "u1"),
        ("device", "<u2"),
    ]
)
assert _LAUNCH.itemsize == Recording.LAUNCH_BYTES
assert _USE.itemsize == Recording.USE_BYTES
_SLOT_SHIFT = 24  # a slot has fewer UM blocks
_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Run:
    """UM blocks [first, first + count) of what has that name."""

    name: int
    first: int
    count: int


class RecordedIteration:
    """A recording as an `Iteration`, of which each launch takes `launch_ns`.

    duplicates: what is only read is on the host as well, so that it leaves without a copy; else
    whatever leaves unified memory is copied. Raises ValueError for a recording of several devices,
    or without launches.
    """

    def __init__(
        self, recording: Recording, launch_ns: Sequence[float], *, duplicates: bool = False
    ) -> None:
        launches = np.frombuffer(recording.launches, _LAUNCH)
        uses = np.frombuffer(recording.uses, _USE)
        if len(launches) == 0 or len(launches) != len(launch_ns):
            raise ValueError("recording: has no launches, or not as many as there are times")
        if len(np.unique(uses["device"])) > 1:
            raise ValueError("recording: is of several devices, of which none can be planned")
        self.hashes = tuple(int(value) for value in launches["hash"])
        self._count = len(launches)
        rows = _blocks_of(uses)
        ends = rows["kind"] == lib.DEEPUM_RECORDED_ENDS
        used = rows[~ends]
        self._keys: _Ints = used["block"] * self._count + used["launch"]
        order = np.argsort(self._keys, kind="stable")
        self._keys, self._used = self._keys[order], used[order]
        self.blocks: list[_Ints] = []  # by item
        items = []
        for events, blocks in self._alike(rows, duplicates).items():
            for at in range(0, len(blocks), ITEM_BLOCKS):
                mine = blocks[at : at + ITEM_BLOCKS]
                items.append(Item(len(mine) * UM_BLOCK_BYTES, events, len(blocks) * UM_BLOCK_BYTES))
                self.blocks.append(np.array(mine, dtype=np.int64))
        self.iteration = Iteration(tuple(launch_ns), tuple(items))

    def runs(self, item: int, launch: int) -> list[Run]:
        """What the item's blocks are called at a launch that uses them."""
        places = np.searchsorted(self._keys, self.blocks[item] * self._count + launch)
        found: list[Run] = []
        for name, index in zip(
            self._used["name"][places].tolist(), self._used["index"][places].tolist(), strict=True
        ):
            last = found[-1] if found else None
            if last is not None and last.name == name and last.first + last.count == index:
                found[-1] = Run(name, last.first, last.count + 1)
            else:
                found.append(Run(name, index, 1))
        return found

    def _alike(
        self, rows: npt.NDArray[np.void], duplicates: bool
    ) -> dict[tuple[Event, ...], list[int]]:
        """UM blocks by their events, in order of place."""
        ends = rows["kind"] == lib.DEEPUM_RECORDED_ENDS
        launch = rows["launch"] % self._count  # what ends behind the last ends before the first
        order = np.lexsort((~ends, launch, rows["block"]))
        block, launch, ends = rows["block"][order], launch[order], ends[order]
        writes = (rows["kind"][order] & lib.DEEPUM_RECORDED_WRITES) != 0
        begins = np.r_[True, block[1:] != block[:-1]][: len(block)]
        starts: list[int] = np.flatnonzero(begins).tolist()
        alike: dict[tuple[Event, ...], list[int]] = defaultdict(list)
        known: dict[bytes, tuple[Event, ...]] = {}
        code = (launch << 2) | (ends.astype(np.int64) << 1) | writes
        for start, end in zip(starts, [*starts[1:], len(block)], strict=True):
            key = code[start:end].tobytes()
            if key not in known:
                known[key] = _events(code[start:end].tolist(), duplicates)
            if any(not event.dies for event in known[key]):
                alike[known[key]].append(int(block[start]))
        return alike


def _blocks_of(uses: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """A row for each UM block of each use."""
    counts = uses["count"].astype(np.int64)
    of = np.repeat(np.arange(len(uses)), counts)
    within = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = np.empty(
        len(of),
        [("block", "i8"), ("launch", "i8"), ("kind", "u1"), ("name", "u8"), ("index", "i8")],
    )
    rows["block"] = (uses["slot"].astype(np.int64)[of] << _SLOT_SHIFT) + uses["block"][of] + within
    rows["launch"] = uses["launch"][of]
    rows["kind"] = uses["kind"][of]
    rows["name"] = uses["name"][of]
    rows["index"] = uses["first"][of].astype(np.int64) + within
    return rows


def _events(codes: Sequence[int], duplicates: bool) -> tuple[Event, ...]:
    """Of a UM block: launch, and whether its content ends, or is written, in order; the use behind
    an end needs no content.
    """
    found: list[Event] = []
    dead = bool(codes[-1] & 2)  # at the end of the iteration before
    for code in codes:
        launch, ends, writes = code >> 2, bool(code & 2), bool(code & 1)
        if ends:
            if not dead or not found:
                found.append(Event.death(launch))
            dead = True
        elif found and not found[-1].dies and found[-1].launch == launch:
            found[-1] = Event(launch, found[-1].reads, found[-1].writes or writes)
        else:
            found.append(Event(launch, not dead, dead or writes or not duplicates))
            dead = False
    return tuple(found)
