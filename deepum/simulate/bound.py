"""A lower bound of the time that a sequence of kernels takes on a card, whoever decides what moves
when.

Content is *alive* between two kernels if a later kernel reads it before any overwrites it. Number
the gaps between kernels: gap *b* is before kernel *b*; let `T(b)` be when kernel *b* - 1 has ended.
At each gap the card of `M` bytes holds at most `M` of the `L(b)` alive bytes; at least `L(b)` - `M`
are on the host only. For two gaps *a* < *b*:

- kernels run one at a time: `T(b)` - `T(a)` is at least the time of the kernels *a* ... *b* - 1.
- *in*: of what is alive at *a*, that which no kernel before *b* reads, `N(a, b)` bytes, may stay
  away; the rest of what is away at *a*
  crosses the link towards the device between *a* and *b*: at least `L(a)` - `M` - `N(a, b)` bytes.
- *out*: what is away at *b* crossed the link towards the host after it was last written. Of it
  `O(a, b)` bytes, last written before
  kernel *a*, may have crossed before; the rest, at least `L(b)` - `M` - `O(a, b)`, crosses between
  *a* and *b*.

Each is a lower bound of `T(b)` - `T(a)`; so is the greatest, `w(a, b)`, and so is the sum of `w`
along any chain of gaps. The bound of the whole is the longest chain. It sees *when* data can move:
room for a forward pass cannot be made before it runs out of data that may leave. Chains with one
element are the well-known max(compute, bytes that must move / bandwidth).

Where the host's memory has a size, `H` bytes, and a disk behind it, the same holds between both
memories and the disk: at least `L` - (`M` + `H`) of what is alive are on the disk only (`H` with
what its buffers hold), and come from it and go to it at its rates. `w` is the greatest of all
these. Without that, the bound of the link alone holds, too: a host of limited size only adds to the
times.

**Kept content** (`Link.kept`). So far content counts until its last read. But only a clairvoyant
drops what is not read any more: whoever moves a program's memory without knowing what it will do
keeps content, here or there, until the program gives the memory up (`Work.dies`, `Use.fresh`), and
drops nothing of it before the kernels that were launched earlier have run. Then content changes
sides over the link only:

- it is alive, and asks for its place, up to the gap at which it ends, whether somebody reads it
  again or not: what a kernel has read is
  there still when it ends, beside what it has written.
- *in*: what is away at *a* and read before *b* crosses, even if it was overwritten in between: a
  kernel that overwrites it has it brought
  first, or writes it over the link, and then it is on the host still. What nobody reads before *b*,
  or before its end, may stay away.
- *out*: as above; what a kernel writes over the link crosses then.

Of a disk nothing is said here: what is overwritten in the host's memory need not be read from
there.

**What the driver costs** (`Link.handling`). A prefetch moves content by UM blocks, and handling a
block of `B` bytes takes its direction `c` ns besides: no more than `B` bytes cross in `B` / rate +
`c`. A transfer that begins while the other direction has one takes `f` times as long. Of two
transfers that run at once the one that began later is slowed: as parts of what the two take when
nothing slows them, both directions do no more than 1 + `g` at a time, where `g` is what a block
takes, over what it takes when it is slowed, of the direction where that is more. So between *a* and
*b* both sums, in and out, each at its rate, take 1 / (1 + `g`) of their time at least. This is the
bound of whoever moves content by prefetches alone. Faults and uses over the link pay in other ways;
nothing is said of content that is dropped, which need not cost either direction anything.

The first two hold for every policy on the model of docs/um-model.md: a copy in advance
(pre-cleaning) is allowed, since what counts as crossing out is any copy after the last write; so
are data used in place over the link, kernels that stream through more than the card holds (nothing
is asked of what a kernel has at once), and content that is dropped because it is dead, which the
first says of all that is not read again, the second of what was given up. Faults, launches and
latencies only add to it. tests/simulate/test_bound.py and test_kept_bound.py compare them with the
best schedules found by brute force.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepum.core.writer import UM_BLOCK_BYTES
from deepum.trace.g10 import Iteration

_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Use:
    """A kernel's use of a piece of content: bytes, and whether it needs what is there, and whether
    it changes it. `fresh`: the program gave up what was there, before the kernel or within it;
    `reads` is of before that, `writes` of after it.
    """

    key: Hashable
    bytes: int
    reads: bool
    writes: bool
    fresh: bool = False


@dataclass(frozen=True)
class Work:
    """A kernel: ns with all of its memory there, and what it uses. `dies`: pieces whose content
    nobody needs afterwards, and which the program gives up: when the kernel has run, or before it,
    if it does not use them.
    """

    ns: float
    uses: tuple[Use, ...]
    dies: tuple[Hashable, ...] = ()


@dataclass(frozen=True)
class Bound:
    """ns; `transfers_ns`: of the bound without the kernels' times, what must move alone."""

    ns: float
    compute_ns: float
    transfers_ns: float


class _Alive:
    """Stretches of time in which content is alive, without a use in between: from gap `born` to gap
    `until`; `read`: the kernel that reads it next, maybe after others wrote to it, or a number
    behind all gaps; last written by kernel `written`.
    """

    def __init__(self, works: Sequence[Work], link: Link) -> None:
        rows: list[list[int]] = []
        since: dict[Hashable, tuple[int, int]] = {}  # gap, bytes
        last_write: dict[Hashable, int] = {}
        unread: dict[Hashable, list[list[int]]] = {}  # rows whose reader is not known yet
        never = len(works) + 1

        def until(gap: int, key: Hashable) -> None:
            if key in since:
                born, size = since[key]
                rows.append([born, gap, never, last_write.get(key, -1), size])
                unread.setdefault(key, []).append(rows[-1])

        for number, work in enumerate(works):
            for use in work.uses:
                if use.reads or link.kept:
                    until(number, use.key)
                # Without duplicates it is written on the device only.
                if use.reads or not (link.duplicates or use.fresh):
                    for row in unread.pop(use.key, ()):
                        row[2] = number
                elif use.fresh:
                    unread.pop(use.key, None)
                if use.fresh:
                    last_write.pop(use.key, None)
                since[use.key] = number + 1, use.bytes
                if use.writes or not link.duplicates:
                    last_write[use.key] = number
            for key in work.dies:
                if link.kept and key in since and since[key][0] <= number:
                    until(number, key)
                unread.pop(key, None)
                since.pop(key, None)
                last_write.pop(key, None)
        if link.kept:
            for key in since:
                until(len(works), key)
        table = np.array(rows, dtype=np.int64).reshape(-1, 5)
        self.born, self.until, self.read, self.written, self.bytes = (table[:, i] for i in range(5))


@dataclass(frozen=True)
class Disk:
    """A disk behind the host's memory: bytes that are neither on the device nor on the disk, its
    buffers' among them; bytes/ns each way.
    """

    host_memory: int
    in_gbps: float
    out_gbps: float


@dataclass(frozen=True)
class Handling:
    """What a driver's prefetch costs beside its bytes: ns of each UM block, and the factor by which
    a transfer takes longer that begins while the other direction has one.
    """

    block_ns: float = 0.0
    both_ways: float = 1.0

    def rate(self, gbps: float) -> float:
        """bytes/ns of a direction on its own."""
        return gbps / self._block(gbps, 1.0)

    def together(self, *gbps: float) -> float:
        """What both directions of those rates do at a time, of what one of them does on its own."""
        return 1 + max(self._block(one, 1.0) / self._block(one, self.both_ways) for one in gbps)

    def _block(self, gbps: float, factor: float) -> float:
        """The time of a UM block, of that of its bytes alone."""
        # Nothing of a link without limit is nothing, and not undefined.
        return factor + (self.block_ns * gbps / UM_BLOCK_BYTES if self.block_ns else 0.0)


@dataclass(frozen=True)
class Link:
    """A card's memory (bytes) and its link (bytes/ns each way).

    `duplicates`: data may be on the device and on the host at once, so that a copy can be made
    ahead of need. Else what a kernel uses is on the device alone then, and leaves for the host
    after its last use, whether that was a write or not: no READ_MOSTLY, nothing used in place over
    the link.

    `kept`: content stays somewhere until the program gives it up; else it may be dropped after its
    last read.

    `handling`: content moves by prefetches, and these cost that.
    """

    memory: int
    in_gbps: float
    out_gbps: float
    duplicates: bool = True
    disk: Disk | None = None
    kept: bool = False
    handling: Handling = Handling()


class _Weights:
    """For each gap b: the first a that is asked for, and w(a, b) from there to b - 1 by the
    transfers alone; when kernels end.
    """

    def __init__(self, works: Sequence[Work], link: Link, reach: int) -> None:
        gaps = len(works) + 1
        handling, rates = link.handling, (link.in_gbps, link.out_gbps)
        tiers = [(link.memory, *map(handling.rate, rates), handling.together(*rates))]
        if link.disk is not None and not link.kept:
            tiers.append(
                (link.memory + link.disk.host_memory, link.disk.in_gbps, link.disk.out_gbps, 2.0)
            )
        alive = _Alive(works, link)
        self.ends = np.concatenate([[0.0], np.cumsum([work.ns for work in works])])
        # Bytes are whole, and less than 2 ** 53: sums are exact.
        live = _during(alive, np.zeros_like(alive.born), gaps, 1)[:, 0]
        # N(a, b) = what is alive at a, next read by kernel b or later.
        never_read = _during(alive, alive.read, gaps, gaps + 1)
        backwards = never_read[:, ::-1]
        np.cumsum(backwards, axis=1, out=backwards)
        # O(a, b) = what is alive at b, last written before kernel a.
        written = _during(alive, alive.written + 1, gaps, gaps)
        np.cumsum(written, axis=1, out=written)
        self.transfers: list[tuple[int, _Floats]] = []
        for b in range(gaps):
            first = max(0, b - reach)
            weight = np.zeros(b - first)
            for memory, in_gbps, out_gbps, together in tiers:
                out = (live[b] - memory - written[b, first:b]) / out_gbps
                into = (live[first:b] - memory - never_read[first:b, b]) / in_gbps
                weight = np.maximum(weight, np.maximum(out, into))
                if together < 2:
                    weight = np.maximum(weight, (out + into) / together)
            self.transfers.append((first, weight))

    def longest(self, start: int, compute: bool) -> _Floats:
        """The longest chain from gap `start` to each gap; minus infinity before it. `compute`: with
        the kernels' times.
        """
        longest = np.full(len(self.transfers), -np.inf)
        longest[start] = 0
        for b in range(start + 1, len(self.transfers)):
            first, weight = self.transfers[b]
            if compute:
                weight = np.maximum(weight, self.ends[b] - self.ends[first:b])
            longest[b] = np.max(longest[first:b] + weight)
        return longest


def _during(alive: _Alive, column: _Ints, gaps: int, columns: int) -> _Floats:
    """By gap: the bytes that are alive then, in each stretch's column.

    A stretch is alive at the gaps born ... until, both included: the kernel that reads it begins at
    gap `until`, and what ends there has been alive while the kernel before it ran.
    """
    counts = np.zeros((gaps + 1, columns))
    np.add.at(counts, (alive.born, column), alive.bytes)
    np.add.at(counts, (alive.until + 1, column), -alive.bytes)
    return np.cumsum(counts, axis=0, out=counts)[:gaps]


def live(works: Sequence[Work], link: Link) -> _Floats:
    """Bytes that are alive at each gap."""
    alive = _Alive(works, link)
    return _during(alive, np.zeros_like(alive.born), len(works) + 1, 1)[:, 0]


def bound(works: Sequence[Work], link: Link, reach: int | None = None) -> Bound:
    """Of the time from the start of the first to the end of the last.

    `reach`: the most kernels that a chain's element spans (all): fewer make it quicker and lower.
    """
    weights = _Weights(works, link, min(reach or len(works), len(works)))
    longest, alone = (weights.longest(0, compute)[-1] for compute in (True, False))
    return Bound(float(longest), sum(work.ns for work in works), float(alone))


def periodic(
    works: Sequence[Work], link: Link, periods: int = 1, reach: int | None = None
) -> Bound:
    """Of one iteration of many equal ones: `works` over and over.

    In a run that has become periodic an iteration takes as long as from any gap to the same gap one
    iteration later, or a k-th of k iterations; the bound is the greatest found from a few gaps.
    Before the first iteration nothing is assumed of what is where.
    """
    n = len(works)
    repeated = [*works] * (periods + 1)
    weights = _Weights(repeated, link, min(reach or n, len(repeated)))
    starts = range(0, n + 1, max(n // 8, 1))
    best = []
    for compute in (True, False):
        found = 0.0
        for start in starts:
            longest = weights.longest(start, compute)
            for count in range(1, periods + 1):
                if start + count * n < len(longest):
                    found = max(found, float(longest[start + count * n]) / count)
        best.append(found)
    return Bound(best[0], sum(work.ns for work in works), best[1])


def between(works: Sequence[Work], link: Link, first: int, last: int) -> Bound:
    """Of the time from gap `first` to gap `last`, in a run that begins before and may go on behind
    them.
    """
    weights = _Weights(works, link, len(works))
    longest, alone = (weights.longest(first, compute)[last] for compute in (True, False))
    return Bound(float(longest), sum(work.ns for work in works[first:last]), float(alone))


def of_iteration(iteration: Iteration) -> list[Work]:
    """The kernels of an iteration in G10's form. The first touch of what is not global needs
    nothing that is there.
    """
    works = []
    for number, kernel in enumerate(iteration.kernels):
        uses = []
        for tensor in iteration.alive(number):
            entry = iteration.tensors[tensor]
            first = not entry.is_global and iteration.births[tensor] == number
            uses.append(
                Use(
                    tensor,
                    entry.bytes,
                    tensor in kernel.reads and not first,
                    tensor in kernel.writes or first,
                )
            )
        works.append(
            Work(
                kernel.us * 1e3,
                tuple(uses),
                tuple(t for t in iteration.alive(number) if iteration.deaths.get(t) == number),
            )
        )
    return works
