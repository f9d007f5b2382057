"""What each launch of a trace reads, overwrites and ends of memory: for all, and for those who have
to keep content.

Content ends when PyTorch takes its block back or the allocation is freed. What could only be told
roughly is left out so that the bound gets lower, never higher: content moves in regions of 64 KiB,
and what is used of one in part alone (rows of a gather, a tensor's ends) is not asked for. Where
parts of a region are written that may make up all of it, with nobody in between who used it whole,
its content before is taken for dead; so it is where a kernel perhaps overwrites something, and
copies from the host do.

For those who keep content what a kernel may overwrite is not dead, since nobody can be certain of
it. Content ends where the program gives memory up (PyTorch's blocks, allocations, its own
discards), and where the driver is asked to overwrite it (memsets, copies): by bytes, in the order
of the program. Whoever moves memory may drop it as soon as what was launched before has run, and no
sooner.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from deepum.core import Allocate, Block, Event, Execute, Free, events
from deepum.simulate.parts import Parts, whole
from deepum.simulate.replay import Launch
from deepum.trace import Trace, work

_SLOT_BITS = 44  # bits of an offset; slots have 20


@dataclass
class Touch:
    """Bytes of a stretch of memory: read, overwritten or dead (`reads` before `writes`; neither:
    its content ends).
    """

    start: int
    end: int
    reads: bool
    writes: bool


@dataclass
class Kernel:
    """A launch, in the order of the program: how many executions were told up to it, and its time.
    `kept`: what it touches for those who keep content; `touches`: for all.
    """

    executions: int
    ns: float
    touches: list[Touch] = field(default_factory=list)
    kept: list[Touch] = field(default_factory=list)


def _place(access: work.Access) -> tuple[int, int]:
    start = (access.slot << _SLOT_BITS) + access.offset
    return start, start + access.bytes


def _managed(one: work.Work) -> Iterator[work.Access]:
    return (access for access in one.accesses if access.slot != work.BY_ADDRESS and access.bytes)


def _touches(one: work.Work, parts: Parts) -> tuple[list[Touch], list[Touch]]:
    """Those of a launch: for all, and for those who keep content. To these a kernel ends nothing,
    but what the driver's memsets and copies write they overwrite, as everybody can see.
    """
    for_all, kept, written = [], [], []
    for access in _managed(one):
        start, end = _place(access)
        writes, perhaps = bool(access.flags & work.WRITE), bool(access.flags & work.PERHAPS)
        reads = bool(access.flags & work.READ) and not access.flags & work.WRITTEN_FIRST
        if perhaps:
            for_all.append(Touch(start, end, False, False))
        if one.flags & work.UNCOUNTED and writes and not reads:
            kept.append(Touch(start, end, False, False))
        first, last = whole(start, end)
        if first < last and not perhaps:
            for_all.append(Touch(first, last, reads, writes))
            kept.append(for_all[-1])
            parts.used(first, last)
        if writes and not reads and not perhaps:
            ends = [(start, first), (last, end)] if first < last else [(start, end)]
            written += [(at, until - at) for at, until in ends if at < until]
    for at, count in written:
        for_all += [Touch(*region, False, False) for region in parts.written(at, count)]
    return for_all, kept


class _Ends:
    """What the program gave up since the last launch: for those who keep content (`kept`), and for
    all.
    """

    def __init__(self) -> None:
        self._allocations: dict[int, tuple[int, int]] = {}  # by slot: generation, bytes
        self.all: list[Touch] = []
        self.kept: list[Touch] = []

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
            self._end(Touch(start, start + event.bytes, False, False))

    def other_work(self, one: work.Work) -> bool:
        """Work that is no launch. Whether it ends content: copies from the host do, and the
        program's own discards.
        """
        touches = [Touch(*_place(access), False, False) for access in _managed(one)]
        if one.kind == work.COPY and one.flags & work.TO_DEVICE:
            self.all += touches
        elif one.kind != work.DISCARD:
            return False
        self.kept += touches
        return True

    def taken(self) -> tuple[list[Touch], list[Touch]]:
        """All of it, and what is kept; then there is nothing."""
        taken = self.all, self.kept
        self.all, self.kept = [], []
        return taken

    def _free(self, slot: int) -> None:
        start = slot << _SLOT_BITS
        self._end(Touch(start, start + self._allocations.pop(slot, (0, 0))[1], False, False))

    def _end(self, touch: Touch) -> None:
        self.all.append(touch)
        self.kept.append(touch)


@dataclass(frozen=True)
class KernelSequence:
    """The launches of a program; `in_order`: all that ends content is in their order."""

    kernels: list[Kernel]
    in_order: bool


def kernel_sequence(trace: Trace, times: Sequence[Launch]) -> KernelSequence | None:
    """Of a trace, with times of any replay; None where launches are on several streams: they may
    run in another order.
    """
    ns: dict[int, list[float]] = {}
    for launch in reversed(times):
        ns.setdefault(launch.sequence, []).append(launch.kernel_ns)
    log_events = events(trace.events)
    pending = next(log_events, None)
    executions, streams, beside = 0, set(), set()
    kernels: list[Kernel] = []
    ends, parts = _Ends(), Parts()
    for one in work.decode(trace.work):
        while pending is not None and pending.sequence <= one.sequence:
            executions += isinstance(pending, Execute)
            ends.event(pending)
            pending = next(log_events, None)
        if one.kind == work.LAUNCH:
            streams.add(one.stream)
            waiting = ns.get(one.sequence)
            kernel = Kernel(executions, waiting.pop() if waiting else 0.0)
            ended, given_up = ends.taken()
            touches, kept = _touches(one, parts)
            kernel.touches, kernel.kept = ended + touches, given_up + kept
            kernels.append(kernel)
        elif ends.other_work(one):
            beside.add(one.stream)
    return KernelSequence(kernels, beside <= streams) if len(streams) == 1 else None
