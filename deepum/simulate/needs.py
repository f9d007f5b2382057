"""What the launches of a trace need of memory, for the lower bound (deepum.simulate.bound): a trace
whose work is known is known kernel by kernel (deepum.simulate.touches).

Memory is cut where accesses begin and end, into pieces that are used whole. Launches in a row are
taken together, so that there are some hundred gaps a step: the bound over fewer gaps is a bound
too, and what is written and read between two of them alone needs nothing. The same again for the
bound of those who have to keep content (`bound.Link.kept`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepum.simulate import bound
from deepum.simulate.replay import Launch, Mark
from deepum.simulate.touches import Kernel, Touch, kernel_sequence
from deepum.trace import Trace

_GROUPS = 160  # a step
_Ints = npt.NDArray[np.int64]


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


def _groups(kernels: Sequence[Kernel], ends: Sequence[int]) -> list[int]:
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

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        # Only what is used whole cuts; what ends does so in all pieces that it meets.
        marks = [
            mark
            for kernel in kernels
            for t in kernel.touches
            if t.reads or t.writes
            for mark in (t.start, t.end)
        ]
        self.cuts: _Ints = np.unique(np.array(marks, dtype=np.int64))

    def of(self, touch: Touch) -> range:
        """Those that it meets."""
        first = int(np.searchsorted(self.cuts, touch.start, side="right")) - 1
        last = int(np.searchsorted(self.cuts, touch.end, side="left"))
        return range(max(first, 0), min(last, len(self.cuts) - 1))

    def bytes(self, piece: int) -> int:
        """Of one of them."""
        return int(self.cuts[piece + 1] - self.cuts[piece])


def _together(kernels: Sequence[Kernel], pieces: _Pieces) -> bound.Work:
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


def _kept_together(kernels: Sequence[Kernel], pieces: _Pieces) -> bound.Work:
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
    program = kernel_sequence(trace, times)
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
    program = kernel_sequence(trace, times) if trace.work and times else None
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
