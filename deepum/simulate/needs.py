"""What the launches of a trace need of memory, for the lower bound (deepum.simulate.bound): a trace
whose work is known is known kernel by kernel.

Memory is cut where accesses begin and end, into pieces that are used whole. Content ends when
PyTorch takes its block back or the allocation is freed. Launches in a row are taken together, so
that there are some hundred gaps a step: the bound over fewer gaps is a bound too, and what is
written and read between two of them alone needs nothing. What could only be told roughly is left
out so that the bound gets lower, never higher: content moves in regions of 64 KiB, and what is used
of one in part alone (rows of a gather, a tensor's ends) is not asked for. Where parts of a region
are written that may make up all of it, with nobody in between who used it whole, its content before
is taken for dead; so it is where a kernel perhaps overwrites something, and copies from the host
do.

The same again for the bound of those who have to keep content (`bound.Link.kept`): there what a
kernel may overwrite is not dead, since nobody can be certain of it. Content ends where the program
gives memory up (PyTorch's blocks, allocations, its own discards), and where the driver is asked to
overwrite it (memsets, copies): by bytes, in the order of the program. Whoever moves memory may drop
it as soon as what was launched before has run, and no sooner.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from deepum.core import Allocate, Block, Event, Execute, Free, events
from deepum.simulate import bound
from deepum.simulate.parts import Parts, whole
from deepum.simulate.replay import Launch, Mark
from deepum.trace import Trace, work

_SLOT_BITS = 44  # bits of an offset; slots have 20
_GROUPS = 160  # a step
_Ints = npt.NDArray[np.int64]


@dataclass
class _Touch:
    """Bytes of a stretch of memory: read, overwritten or dead (`reads` before `writes`; neither:
    its content ends).
    """

    start: int
    end: int
    reads: bool
    writes: bool


@dataclass
class _Kernel:
    """A launch, in the order of the program: how many executions were told up to it, and its time.
    `kept`: what it touches for those who keep content; `touches`: for all.
    """

    executions: int
    ns: float
    touches: list[_Touch] = field(default_factory=list)
    kept: list[_Touch] = field(default_factory=list)


@dataclass(frozen=True)
class Steps:
    """`works` from the first launch on; gaps (indices into it) at the ends of the steps that were
    asked for. `kept`: the same works for those who keep content; None where what ends it is not in
    the order of the launches. `launches`: by gap, executions before it.
    """

    works: list[bound.Work]
    gaps: list[int]
    kept: list[bound.Work] | None = None
    launches: tuple[int, ...] = ()


def _place(access: work.Access) -> tuple[int, int]:
    start = (access.slot << _SLOT_BITS) + access.offset
    return start, start + access.bytes


def _managed(one: work.Work) -> Iterator[work.Access]:
    return (access for access in one.accesses if access.slot != work.BY_ADDRESS and access.bytes)


def _touches(one: work.Work, parts: Parts) -> tuple[list[_Touch], list[_Touch]]:
    """Those of a launch: for all, and for those who keep content. To these a kernel ends nothing,
    but what the driver's memsets and copies write they overwrite, as everybody can see.
    """
    for_all, kept, written = [], [], []
    for access in _managed(one):
        start, end = _place(access)
        writes, perhaps = bool(access.flags & work.WRITE), bool(access.flags & work.PERHAPS)
        reads = bool(access.flags & work.READ) and not access.flags & work.WRITTEN_FIRST
        if perhaps:
            for_all.append(_Touch(start, end, False, False))
        if one.flags & work.UNCOUNTED and writes and not reads:
            kept.append(_Touch(start, end, False, False))
        first, last = whole(start, end)
        if first < last and not perhaps:
            for_all.append(_Touch(first, last, reads, writes))
            kept.append(for_all[-1])
            parts.used(first, last)
        if writes and not reads and not perhaps:
            ends = [(start, first), (last, end)] if first < last else [(start, end)]
            written += [(at, until - at) for at, until in ends if at < until]
    for at, count in written:
        for_all += [_Touch(*region, False, False) for region in parts.written(at, count)]
    return for_all, kept


class _Ends:
    """What the program gave up since the last launch: for those who keep content (`kept`), and for
    all.
    """

    def __init__(self) -> None:
        self._allocations: dict[int, tuple[int, int]] = {}  # by slot: generation, bytes
        self.all: list[_Touch] = []
        self.kept: list[_Touch] = []

    def event(self, event: Event) -> None:
        """One that the trace tells."""
        if isinstance(event, Allocate):
            if self._allocations.get(event.slot) not in (None, (event.generation, event.bytes)):
                self._free(event.slot)  # another in its place
            self._allocations[event.slot] = event.generation, event.bytes
        elif isinstance(event, Free):
            self._free(event.slot)
        elif isinstance(event, Block) and event.kind == "block_inactive":
            start = (event.slot << _SLOT_BITS) + event.offset
            self._end(_Touch(start, start + event.bytes, False, False))

    def asked(self, one: work.Work) -> bool:
        """Work that is no launch. Whether it ends content: copies from the host do, and the
        program's own discards.
        """
        touches = [_Touch(*_place(access), False, False) for access in _managed(one)]
        if one.kind == work.COPY and one.flags & work.TO_DEVICE:
            self.all += touches
        elif one.kind != work.DISCARD:
            return False
        self.kept += touches
        return True

    def taken(self) -> tuple[list[_Touch], list[_Touch]]:
        """All of it, and what is kept; then there is nothing."""
        taken = self.all, self.kept
        self.all, self.kept = [], []
        return taken

    def _free(self, slot: int) -> None:
        start = slot << _SLOT_BITS
        self._end(_Touch(start, start + self._allocations.pop(slot, (0, 0))[1], False, False))

    def _end(self, touch: _Touch) -> None:
        self.all.append(touch)
        self.kept.append(touch)


@dataclass(frozen=True)
class _Program:
    """Its launches; `in_order`: all that ends content is in their order."""

    kernels: list[_Kernel]
    in_order: bool


def _program(trace: Trace, times: Sequence[Launch]) -> _Program | None:
    """None where launches are on several streams: they may run in another order."""
    ns: dict[int, list[float]] = {}
    for launch in reversed(times):
        ns.setdefault(launch.sequence, []).append(launch.kernel_ns)
    told = events(trace.events)
    pending = next(told, None)
    executions, streams, beside = 0, set(), set()
    kernels: list[_Kernel] = []
    ends, parts = _Ends(), Parts()
    for one in work.decode(trace.work):
        while pending is not None and pending.sequence <= one.sequence:
            executions += isinstance(pending, Execute)
            ends.event(pending)
            pending = next(told, None)
        if one.kind == work.LAUNCH:
            streams.add(one.stream)
            waiting = ns.get(one.sequence)
            kernel = _Kernel(executions, waiting.pop() if waiting else 0.0)
            ended, given_up = ends.taken()
            touches, kept = _touches(one, parts)
            kernel.touches, kernel.kept = ended + touches, given_up + kept
            kernels.append(kernel)
        elif ends.asked(one):
            beside.add(one.stream)
    return _Program(kernels, beside <= streams) if len(streams) == 1 else None


def _groups(kernels: Sequence[_Kernel], ends: Sequence[int]) -> list[int]:
    """Gaps between kernels, from 0 on: at the ends of steps (in executions), and between as many as
    there shall be, evenly in time.
    """
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
        marks = [
            mark
            for kernel in kernels
            for t in kernel.touches
            if t.reads or t.writes
            for mark in (t.start, t.end)
        ]
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
    """Kernels in a row as one: a piece is read if the first that meets it reads it, and dead if
    nothing is written after its end.
    """
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


def _kept_together(kernels: Sequence[_Kernel], pieces: _Pieces) -> bound.Work:
    """Kernels in a row as one, for those who keep content: what one of them reads it reads, whoever
    wrote before.
    """
    # By piece: read before it ended, ended, and since then written, used.
    reads, ended, writes, used = (np.zeros(len(pieces.cuts), dtype=np.bool_) for _ in range(4))
    for kernel in kernels:
        for touch in kernel.kept:
            met = pieces.of(touch)
            there = slice(met.start, met.stop)
            if not touch.reads and not touch.writes:
                ended[there] = True
                writes[there] = used[there] = False
                continue
            used[there] = True
            if touch.reads:
                reads[there] |= ~ended[there]
            if touch.writes:
                writes[there] = True
    uses = tuple(
        bound.Use(
            piece, pieces.bytes(piece), bool(reads[piece]), bool(writes[piece]), bool(ended[piece])
        )
        for piece in np.flatnonzero(used | reads).tolist()
    )
    return bound.Work(
        sum(kernel.ns for kernel in kernels), uses, tuple(np.flatnonzero(ended & ~used).tolist())
    )


def needs(trace: Trace, times: Sequence[Launch], ends: Sequence[Mark]) -> Steps | None:
    """What a replay's launches need. `times`: of any replay on the machine; `ends`: marks of the
    steps' ends. None where that is not known.
    """
    if not trace.work or not times:
        return None
    program = _program(trace, times)
    if program is None or not program.kernels:
        return None
    kernels = program.kernels
    gaps = _groups(kernels, [mark.launches for mark in ends])
    pieces = _Pieces(kernels)
    groups = [kernels[first:last] for first, last in itertools.pairwise(gaps)]
    works = [_together(group, pieces) for group in groups]
    kept = [_kept_together(group, pieces) for group in groups] if program.in_order else None
    executions = [kernel.executions for kernel in kernels]
    where = {gap: number for number, gap in enumerate(gaps)}
    return Steps(
        works,
        [where[int(np.searchsorted(executions, mark.launches, side="right"))] for mark in ends],
        kept,
        tuple(
            kernels[gap].executions - 1 if gap < len(kernels) else executions[-1] for gap in gaps
        ),
    )


def by_launch(
    trace: Trace, times: Sequence[Launch], marks: Sequence[Mark]
) -> list[list[bound.Work]] | None:
    """What each launch needs of those who keep content, between each two marks in a row. None where
    that is not known.
    """
    program = _program(trace, times) if trace.work and times else None
    if program is None or not program.in_order:
        return None
    executions = np.array([kernel.executions for kernel in program.kernels])
    at = [int(np.searchsorted(executions, mark.launches, side="right")) for mark in marks]
    parts = [program.kernels[first:last] for first, last in itertools.pairwise(at)]
    pieces = [_Pieces(part) for part in parts]
    return [
        [_kept_together([kernel], of_part) for kernel in part]
        for part, of_part in zip(parts, pieces, strict=True)
    ]
