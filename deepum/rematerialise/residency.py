"""Which contents are resident, how much memory they take, and which of them leaves first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict, Unpack

from deepum.rematerialise import groups
from deepum.rematerialise.evictable import Evictable
from deepum.rematerialise.graph import Content, Operation
from deepum.rematerialise.heuristics import DEFAULT, NEVER, Heuristic

_FEW = 32  # candidates, below which all are scored
_SMALL = 0.01  # of the mean candidate's size: too small to be scored (the DTR paper's filter)


class Backend(Protocol):
    """What memory is, and how to compute."""

    def evict(self, content: Content) -> None:
        """Free the memory of a resident content."""

    def compute(self, operation: Operation, wanted: Sequence[Content]) -> float:
        """Run an operation again whose inputs are resident, and put its results into `wanted`;
        nanoseconds that it took. What it overwrites is used up: nobody else reads that, since
        what does was computed before.
        """

    def hold(self, content: Content) -> Any:
        """What keeps the memory of a content as long as the caller has it; None if it went, and the
        engine has not been told yet.
        """

    def keep(self, operation: Operation, content: Content) -> None:
        """The content cannot be computed any more: the operation keeps its memory alive."""

    def free_beside(self, content: Content) -> int:
        """Free bytes adjacent to its memory, on both sides."""

    def abandoned(self) -> Iterable[Content]:
        """Sources whose memory nobody but operations keeps alive, with the largest first."""


@dataclass
class Counters:
    """What the engine did, and what it cost; times in nanoseconds, as measured or simulated."""

    evictions: int = 0
    evicted_bytes: int = 0
    recomputations: int = 0
    recomputed_ns: float = 0.0
    scored: int = 0  # candidates
    banished: int = 0  # contents that became pinned so that memory of others went
    peak_bytes: int = 0


class Selection(TypedDict, total=False):
    """How what leaves is selected. smallest: bytes of a content that is worth evicting, 0.
    sampling: the square root of all candidates is scored, and those of 1 % of the mean size or less
    are not (the paper's optimisations), instead of all; True. seed: of what is drawn, 0.
    """

    smallest: int
    sampling: bool
    seed: int


class Residency:
    """heuristic: DEFAULT if none is given."""

    def __init__(
        self, backend: Backend, heuristic: Heuristic | None = None, **selection: Unpack[Selection]
    ) -> None:
        self.heuristic: Heuristic = heuristic or DEFAULT
        self.counters = Counters()
        self.used = 0
        self.clock = 0.0
        self._backend = backend
        self._smallest = max(1, selection.get("smallest", 0))
        self._sampling = selection.get("sampling", True)
        self._evictable = Evictable(selection.get("seed", 0))

    def add(self, content: Content) -> None:
        """A new content is resident."""
        content.last_use = self.clock
        self.grow(content.bytes)
        self._offer(content)

    def grow(self, size: int) -> None:
        """Memory of no content is taken (or, negative, given back)."""
        self.used += size
        self.counters.peak_bytes = max(self.counters.peak_bytes, self.used)

    def release(self, content: Content) -> None:
        """The program let go of it: its memory is free, its path stays."""
        content.is_held = False
        self._leave(content)

    def forget(self, content: Content) -> None:
        """The program has its memory, and changes it unseen from now on."""
        self._evictable.discard(content)
        if content.is_resident:
            content.is_resident = False
            self.used -= content.bytes

    def begin_step(self) -> None:
        """The program begins anew what it did before. Draws do so as well: what repeats itself can
        be foreseen, by what moves memory or places it.
        """
        self._evictable.restart()

    def elapse(self, nanoseconds: float) -> None:
        """The program computed."""
        self.clock += nanoseconds

    def _offer(self, content: Content) -> None:
        if content.producer is not None and content.bytes >= self._smallest:
            self._evictable.add(content)

    def _leave(self, content: Content) -> None:
        """Its memory is gone."""
        self._evictable.discard(content)
        if content.is_resident:
            content.is_resident = False
            self.used -= content.bytes
            if self.heuristic.uses_groups and content.producer is not None:
                groups.evicted(content)

    def _evict(self, content: Content) -> None:
        self._backend.evict(content)
        self.counters.evictions += 1
        self.counters.evicted_bytes += content.bytes
        self._leave(content)

    def _victim(self) -> Content | None:
        count = len(self._evictable)
        if self._sampling and count > _FEW:
            smallest = _SMALL * self._evictable.bytes / count
            found = self._best(self._evictable.sample(), smallest)
            if found is not None:
                return found
        return self._best(self._evictable.all(), 0.0)

    def _may_leave(self, content: Content) -> bool:
        return not content.locks

    def _best(self, contents: Sequence[Content], smallest: float) -> Content | None:
        best, least = None, NEVER
        beside = 0
        for one in contents:
            if one.bytes < smallest or not self._may_leave(one):
                continue
            if self.heuristic.uses_addresses:
                beside = self._backend.free_beside(one)
            score = self.heuristic.score(one, self.clock - one.last_use, beside)
            self.counters.scored += 1
            if score < least:
                best, least = one, score
        return best
