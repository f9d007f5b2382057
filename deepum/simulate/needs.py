"""What the launches of a trace need of memory, for the lower bound (deepum.simulate.bound): a trace whose work is known is known kernel by
kernel.

Memory is cut where accesses begin and end, into pieces that are used whole. Content ends when PyTorch takes its block back or the
allocation is freed. Launches in a row are taken together, so that there are some hundred gaps a step: the bound over fewer gaps is a bound
too, and what is written and read between two of them alone needs nothing. What could only be told roughly is left out so that the bound
gets lower, never higher: accesses of less than a region of 64 KiB (rows of a gather) are not asked for, and where they, or a kernel of
which that is not known, may overwrite something, its content before is taken for dead; copies from the host likewise.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from deepum.core import Allocate, Block, Execute, Free, events
from deepum.simulate import bound
from deepum.simulate.replay import Launch, Mark
from deepum.trace import Trace, work

_REGION = 1 << 16
_SLOT_BITS = 44  # bits of an offset; slots have 20
_GROUPS = 160  # a step
_Ints = npt.NDArray[np.int64]


@dataclass
class _Touch:
    """Bytes of a stretch of memory: read, overwritten or dead (`reads` before `writes`; neither: its content ends)."""

    start: int
    end: int
    reads: bool
    writes: bool


@dataclass
class _Kernel:
    """A launch, in the order of the program: how many executions were told up to it, and its time."""

    executions: int
    ns: float
    touches: list[_Touch] = field(default_factory=list)


@dataclass(frozen=True)
class Steps:
    """`works` from the first launch on; gaps (indices into it) at the ends of the steps that were asked for."""

    works: list[bound.Work]
    gaps: list[int]


def _touches(one: work.Work) -> Iterator[_Touch]:
    for access in one.accesses:
        if access.slot == work.BY_ADDRESS or access.bytes == 0:
            continue
        start = (access.slot << _SLOT_BITS) + access.offset
        end = start + access.bytes
        reads, writes = bool(access.flags & work.READ), bool(access.flags & work.WRITE)
        if access.flags & work.WRITTEN_FIRST:
            reads = False
        if access.flags & work.PERHAPS or (access.bytes < _REGION and writes and not reads):
            yield _Touch(start, end, False, False)
        elif access.bytes >= _REGION:
            yield _Touch(start, end, reads, writes)


def _kernels(trace: Trace, times: Sequence[Launch]) -> list[_Kernel] | None:
    """None where launches are on several streams: they may run in another order."""
    ns: dict[int, list[float]] = {}
    for launch in reversed(times):
        ns.setdefault(launch.sequence, []).append(launch.kernel_ns)
    told = events(trace.events)
    pending = next(told, None)
    executions, streams, sizes = 0, set(), {}
    kernels: list[_Kernel] = []
    ended: list[_Touch] = []  # what died since the last launch
    for one in work.decode(trace.work):
        while pending is not None and pending.sequence <= one.sequence:
            if isinstance(pending, Execute):
                executions += 1
            elif isinstance(pending, Allocate):
                sizes[pending.slot] = pending.bytes
            elif isinstance(pending, Free):
                ended.append(_Touch(pending.slot << _SLOT_BITS, (pending.slot << _SLOT_BITS) + sizes.get(pending.slot, 0), False, False))
            elif isinstance(pending, Block) and pending.kind == "block_inactive":
                start = (pending.slot << _SLOT_BITS) + pending.offset
                ended.append(_Touch(start, start + pending.bytes, False, False))
            pending = next(told, None)
        if one.kind == work.LAUNCH:
            streams.add(one.stream)
            waiting = ns.get(one.sequence)
            kernel = _Kernel(executions, waiting.pop() if waiting else 0.0)
            kernel.touches = [*ended, *_touches(one)]
            kernels.append(kernel)
            ended = []
        elif one.kind == work.COPY and one.flags & work.TO_DEVICE:
            ended += [_Touch(t.start, t.end, False, False) for t in _touches(one)]
    return kernels if len(streams) == 1 else None


def _groups(kernels: Sequence[_Kernel], ends: Sequence[int]) -> list[int]:
    """Gaps between kernels, from 0 on: at the ends of steps (in executions), and between as many as there shall be, evenly in time."""
    executions = np.array([kernel.executions for kernel in kernels])
    cuts = {0, len(kernels), *(int(np.searchsorted(executions, end, side="right")) for end in ends)}
    clock = np.concatenate([[0.0], np.cumsum([kernel.ns + 1.0 for kernel in kernels])])
    step = clock[-1] / max(len(ends), 1) / _GROUPS
    inner = np.searchsorted(clock, np.arange(0.0, clock[-1], step))
    return sorted(cuts | {int(at) for at in inner})


class _Pieces:
    """Memory, cut where touches begin and end."""

    def __init__(self, kernels: Sequence[_Kernel]) -> None:
        # Only what is used whole cuts; what ends does so in all pieces that it meets.
        marks = [mark for kernel in kernels for t in kernel.touches if t.reads or t.writes for mark in (t.start, t.end)]
        self.cuts: _Ints = np.unique(np.array(marks, dtype=np.int64))

    def of(self, touch: _Touch) -> range:
        """Those that it meets."""
        first = int(np.searchsorted(self.cuts, touch.start, side="right")) - 1
        last = int(np.searchsorted(self.cuts, touch.end, side="left"))
        return range(max(first, 0), min(last, len(self.cuts) - 1))

    def bytes(self, piece: int) -> int:
        """Of one of them."""
        return int(self.cuts[piece + 1] - self.cuts[piece])


def _together(kernels: Sequence[_Kernel], pieces: _Pieces) -> bound.Work:
    """Kernels in a row as one: a piece is read if the first that meets it reads it, and dead if nothing is written after its end."""
    first_reads: dict[int, bool] = {}
    written: set[int] = set()
    dead: set[int] = set()
    for kernel in kernels:
        for touch in kernel.touches:
            met = pieces.of(touch)
            if not touch.reads and not touch.writes:
                for piece in met:
                    first_reads.setdefault(piece, False)
                    dead.add(piece)
                continue
            for piece in met:
                first_reads.setdefault(piece, touch.reads)
                if touch.writes:
                    written.add(piece)
            if touch.writes:
                dead.difference_update(met)
    uses = tuple(
        bound.Use(piece, pieces.bytes(piece), reads, piece in written)
        for piece, reads in first_reads.items()
        if reads or (piece in written and piece not in dead)
    )
    # What ended before anything else met it must not be taken for alive because it was used before.
    return bound.Work(sum(kernel.ns for kernel in kernels), uses, tuple(dead))


def needs(trace: Trace, times: Sequence[Launch], ends: Sequence[Mark]) -> Steps | None:
    """What a replay's launches need. `times`: of any replay on the machine; `ends`: marks of the steps' ends. None where that is
    not known."""
    if not trace.work or not times:
        return None
    kernels = _kernels(trace, times)
    if not kernels:
        return None
    gaps = _groups(kernels, [mark.launches for mark in ends])
    pieces = _Pieces(kernels)
    works = [_together(kernels[first:last], pieces) for first, last in itertools.pairwise(gaps)]
    executions = [kernel.executions for kernel in kernels]
    where = {gap: number for number, gap in enumerate(gaps)}
    return Steps(works, [where[int(np.searchsorted(executions, mark.launches, side="right"))] for mark in ends])
