"""The device of a captured program: its storages as PyTorch blocks, its launches as events and
work.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from deepum.capture.launch import Launch, Pieces, Scratch, Use, span
from deepum.capture.rows import Rows
from deepum.capture.runs import runs
from deepum.trace.allocator import Block
from deepum.trace.program import Program, distinct, exact, hashed
from deepum.trace.stretch import Stretch
from deepum.trace.work import Access, with_accesses

_KEPT = {"cublas", "cublas backward"}  # scratch that a library asks for once


@dataclass(slots=True)
class Held:
    """A storage's memory. `born`: number of the step and ordinal among its births; `watch`: tells
    when it dies.
    """

    block: Block | None
    bytes: int
    born: tuple[int, int]
    watch: Any = None
    # Birth of the indices that it holds again, and where they lay.
    indices: tuple[tuple[int, int], int] | None = None


@dataclass(frozen=True)
class Step:
    """What a step was. `drawn`: which of its work records touch rows that are drawn anew in each
    step, and where they lie. `memory`: what was handed out at its end.
    """

    stretch: Stretch
    drawn: tuple[tuple[int, Sequence[tuple[Use, int, int, int]]], ...]
    memory: frozenset[tuple[int, int, int]]
    launches: int
    flops: float

    def like(self, other: Step) -> bool:
        """Whether it would be repeated by the same program as the other is: but for drawn rows they
        are the same, and so is what they leave behind.
        """
        drawn = {at for at, _ in self.drawn}
        if (
            drawn != {at for at, _ in other.drawn}
            or self.memory != other.memory
            or self.stretch.events != other.stretch.events
        ):
            return False
        pairs = zip(self.stretch.work, other.stretch.work, strict=True)
        return all(mine == theirs or at in drawn for at, (mine, theirs) in enumerate(pairs))


class Device:
    """`step` counts from 0; what is built before the first step is step 0 too."""

    def __init__(self, seed: int = 0) -> None:
        self.program = Program()
        self.step = 0
        self.launches = 0  # in this step, as all that follows
        self.flops = 0.0
        self._drawn: list[tuple[int, Sequence[tuple[Use, int, int, int]]]] = []
        self._begun = self.program.writer.point()
        self.peak_bytes = 0
        self._seed = seed
        self._births = 0
        self._held: dict[int, Held] = {}
        self._scratch: dict[str, Held] = {}

    def knows(self, storage: Any) -> bool:
        """Whether it is alive here."""
        return storage._cdata in self._held

    def birth(self, storage: Any) -> None:
        """Memory for a new storage, until Python and autograd let go of it."""
        key = storage._cdata
        held = self._held[key] = self._take(storage.nbytes())
        held.watch = weakref.ref(storage, self._death(key))

    def _take(self, size: int) -> Held:
        # PyTorch allocates nothing for nothing.
        block = self.program.allocate(size) if size else None
        self._births += 1
        self.peak_bytes = max(self.peak_bytes, self.program.allocator.allocated_bytes)
        return Held(block, size, (self.step, self._births))

    def _give_back(self, held: Held) -> None:
        if held.block is not None:
            self.program.free(held.block)

    def _death(self, key: int) -> Callable[[Any], None]:
        def died(_reference: Any) -> None:
            self._give_back(self._held.pop(key))

        return died

    def forget(self) -> None:
        """No death is told any more."""
        for held in self._held.values():
            held.watch = None

    def rows(self, indices: Any, table: Any, row_bytes: int, count: int | None = None) -> Pieces:
        """The rows of a table that indices pick."""
        (step, ordinal), offset = self._indices(indices)
        fixed = step != self.step
        key = f"{step if fixed else '-'} {ordinal} {offset}"
        return Rows(
            key,
            indices.numel() if count is None else count,
            row_bytes,
            span(table),
            self._seed,
            fixed,
        )

    def same_rows(self, to: Any, indices: Any) -> None:
        """`to` holds those indices again."""
        self._held[to.untyped_storage()._cdata].indices = self._indices(indices)

    def _indices(self, tensor: Any) -> tuple[tuple[int, int], int]:
        held = self._held[tensor.untyped_storage()._cdata]
        return held.indices or (held.born, tensor.storage_offset())

    def carry_out(self, launches: Sequence[Launch]) -> None:
        """In order. Scratch memory is there from its first use to the end."""
        taken: list[str] = []
        for launch in launches:
            for use in launch.uses:
                if isinstance(use.tensor, Scratch) and use.tensor.name not in self._scratch:
                    self._scratch[use.tensor.name] = self._take(use.tensor.bytes)
                    taken.append(use.tensor.name)
            self._launch(launch)
        for name in taken:
            if name not in _KEPT:
                self._give_back(self._scratch.pop(name))

    def _place(self, use: Use) -> tuple[Held, int, int]:
        """Where it is, and the first byte and bytes used of that."""
        if isinstance(use.tensor, Scratch):
            return self._scratch[use.tensor.name], 0, use.tensor.bytes
        held = self._held[use.tensor.untyped_storage()._cdata]
        return held, int(use.tensor.storage_offset() * use.tensor.itemsize), span(use.tensor)

    def _launch(self, launch: Launch) -> None:
        touched, identity, drawn = [], [launch.name], False
        places: list[tuple[Use, int, int, int]] = []
        for use in launch.uses:
            held, offset, size = self._place(use)
            if held.block is None or size == 0:
                continue
            slot, start = held.block.segment.slot, held.block.offset + offset
            shape = () if isinstance(use.tensor, Scratch) else tuple(use.tensor.shape)
            # Without its place: the shim leaves that out for PyTorch's memory, whose blocks the
            # core names.
            identity.append(
                f"{shape} {use.tensor.dtype if not isinstance(use.tensor, Scratch) else ''}"
            )
            touched.append(held.block.range)
            if use.flags:
                pieces = use.pieces
                if pieces is None and not isinstance(use.tensor, Scratch):
                    pieces = runs(use.tensor)
                # Without the tensor: it may be drawn from again long after the tensor has died.
                places.append((Use(None, use.flags, pieces), slot, start, size))
                drawn = drawn or isinstance(use.pieces, Rows)
        if not touched:
            return
        execution_hash, accesses = hashed("\n".join(identity)), _accesses(places, self.step)
        writer = self.program.writer
        if launch.memcpy:
            accesses.reverse()
            ranges = [exact(access.slot, access.offset, access.bytes) for access in accesses]
            writer.copy_inside(
                execution_hash, accesses[0], accesses[1] if len(accesses) > 1 else None, ranges
            )
            return
        if drawn:
            self._drawn.append((writer.point()[1] - self._begun[1], places))
        self.launches += 1
        self.flops += launch.cost.flops
        writer.launch(
            execution_hash, distinct(touched), accesses, launch.cost, sparse=launch.sparse
        )

    def copy(self, tensor: Any, to_device: bool) -> None:
        """Between host and device; the program waits for what it reads back."""
        held, offset, size = self._place(Use(tensor, 0))
        if held.block is None or size == 0:
            return
        slot, start = held.block.segment.slot, held.block.offset + offset
        identity = hashed(f"copy {to_device} {self.program.segment_names[slot]} {start} {size}")
        self.program.writer.copy(
            identity, Access(slot, 0, start, size), exact(slot, start, size), to_device
        )
        if not to_device:
            self.program.writer.synchronise()

    def end_step(self, synchronise: bool) -> Step:
        """The last launch was the step's last. `synchronise`: the program waits for the GPU
        then.
        """
        writer = self.program.writer
        writer.end_step()
        if synchronise:
            writer.synchronise()
        step = Step(
            writer.since(self._begun), tuple(self._drawn), self._memory(), self.launches, self.flops
        )
        self._begin()
        return step

    def repeat(self, step: Step) -> None:
        """The step once more, with other rows where rows are drawn."""
        records = list(step.stretch.work)
        for at, places in step.drawn:
            records[at] = with_accesses(records[at], _accesses(places, self.step))
        self.program.writer.repeat(Stretch(step.stretch.events, tuple(records)))
        self._begin()

    def _begin(self) -> None:
        self.step += 1
        self.launches, self.flops = 0, 0.0
        self._births = 0
        self._drawn = []
        self._begun = self.program.writer.point()

    def _memory(self) -> frozenset[tuple[int, int, int]]:
        held = (*self._held.values(), *self._scratch.values())
        return frozenset(
            (one.block.segment.slot, one.block.offset, one.block.bytes)
            for one in held
            if one.block is not None
        )


def _accesses(places: Sequence[tuple[Use, int, int, int]], step: int) -> list[Access]:
    return [
        Access(slot, use.flags, start + at, count)
        for use, slot, start, size in places
        for at, count in (((0, size),) if use.pieces is None else use.pieces.at(step))
    ]
