"""Dynamic tensor rematerialisation: memory is kept below a budget by evicting contents that can be
computed again, and they are when they are used (Kirisame et al., ICLR 2021; MegEngine 1.4).

The engine knows contents and operations only. What memory is, and how an operation is run again, is
a backend's: tensors of PyTorch (deepum.rematerialise.pytorch), or a recorded trace.
"""

from __future__ import annotations

from typing import Any, Unpack

from deepum.rematerialise import groups
from deepum.rematerialise.graph import Content
from deepum.rematerialise.heuristics import Heuristic
from deepum.rematerialise.paths import Paths
from deepum.rematerialise.residency import Backend, Selection


class BudgetError(Exception):
    """Nothing is left that may be evicted, with `missing` bytes too few; `in_use` bytes of what
    could be are read at that time, or computed from.
    """

    def __init__(self, missing: int, in_use: int) -> None:
        super().__init__(f"{missing} bytes too few")
        self.missing = missing
        self.in_use = in_use


class Engine(Paths):
    """budget: bytes of contents at most."""

    def __init__(
        self,
        budget: int,
        backend: Backend,
        heuristic: Heuristic | None = None,
        **selection: Unpack[Selection],
    ) -> None:
        super().__init__(backend, heuristic, **selection)
        self.budget = budget
        self.overhead = 0  # bytes that the device's allocator takes beyond those of contents
        self._is_severing = False
        self._was_short = False  # of memory, in this operation of the program

    # What the backend tells.

    def overwrite(self, content: Content) -> None:
        """The program changes a source: what is computed from it comes back before that, and cannot
        be computed any more.
        """
        self._sever(content)

    def before_release(self, content: Content) -> None:
        """The program is about to let go of a resident content, which can be computed again."""

    def pin(self, content: Content, why: str) -> None:
        """It is never evicted from now on, and comes back if it was."""
        self.materialise(content)
        content.why = why
        self._cut(content)

    def abandon(self, source: Content) -> None:
        """The program let go of a source, and contents are computed from it: it stays for them
        until memory is short.
        """

    # What the program needs.

    def make_room(self, size: int) -> None:
        """So many bytes fit. Raises BudgetError where nothing is left to evict."""
        budget = self.budget - self.overhead
        if self.used + size > budget and not self._was_short:
            self._was_short = True
            self._banish(only_without_loss=True)
        while self.used + size > budget:
            victim = self._spent() or self._victim()
            if victim is not None:
                self._evict(victim)
            elif not self._relieve(self.used + size - budget):
                return

    def settle(self) -> None:
        super().settle()
        self._was_short = False

    # How.

    def _relieve(self, missing: int) -> bool:
        """Nothing is left to evict, with so many bytes too few: whether more can be evicted now.
        False: what is asked for is had all the same.
        """
        if self._banish():
            return True
        in_use = sum(one.bytes for one in self._evictable.all() if one.locks)
        raise BudgetError(missing, in_use)

    def _banish(self, only_without_loss: bool = False) -> bool:
        """Give up sources that operations alone keep: what is computed from them is pinned. One at
        least, if that frees memory; or all that take as much as what would be pinned. Whether there
        was any.
        """
        if self._is_severing:
            return False
        found = False
        for source in self._backend.abandoned():
            made = [one for reader in source.readers for one in reader.living()]
            if source.locks or not all(one.is_resident for one in made):
                continue
            if only_without_loss and not self._is_no_gain(source, made):
                continue
            found = self._gives_up(source) or found
            if found and not only_without_loss:
                break
        return found

    def _gives_up(self, source: Content) -> bool:
        """Whether a source could be given up, which freed memory."""
        if any(one.locks for one in self._lost_with(source)[2]):
            return False  # something is being computed from it
        before = self.used
        try:
            self._sever(source)
        except BudgetError:
            return False
        self.counters.banished += 1
        if self._backend.hold(source) is None:
            self.release(source)
        return self.used < before

    def _lost_with(self, source: Content) -> tuple[list[Content], list[Any], list[Content]]:
        """Of what cannot be computed without a source: what the program can ask for next, with what
        keeps its memory, and what lies before that.
        """
        kept: list[Content] = []
        held: list[Any] = []
        broken: list[Content] = []
        seen: set[int] = set()
        front = [source]
        while front:
            for reader in list(front.pop().readers):
                for one in reader.living():
                    if id(one) in seen:
                        continue
                    seen.add(id(one))
                    memory = self._backend.hold(one) if one.is_held else None
                    if memory is not None:
                        kept.append(one)
                        held.append(memory)
                    else:
                        broken.append(one)
                        front.append(one)
        return kept, held, broken

    def _sever(self, source: Content) -> None:
        """What is computed from a source that is lost comes back if the program can ask for it, and
        is a source from then on.
        """
        kept, _held, broken = self._lost_with(source)
        was, self._is_severing = self._is_severing, True
        try:
            locked = self.acquire(kept)
        finally:
            self._is_severing = was
        for one in kept:
            self._cut(one, cascades=True)
        self.free_locks(locked)
        for one in broken:
            self._give_up(one)

    def _cut(self, content: Content, cascades: bool = False) -> None:
        """A resident content becomes a source, kept for what is computed from it. cascades: what is
        not larger, and resident, becomes one as well instead.
        """
        front = [content]
        while front:
            one = front.pop()
            if one.producer is None:
                continue
            self._evictable.discard(one)
            one.producer = None
            one.depth = 0
            for reader in list(one.readers):
                made = list(reader.living())
                if cascades and self._is_no_gain(one, made):
                    front += made
                else:
                    self._backend.keep(reader, one)

    @staticmethod
    def _is_no_gain(source: Content, made: list[Content]) -> bool:
        """Whether keeping a source takes as much memory as keeping what is computed from it, which
        is there.
        """
        return (
            all(one.is_resident and one.is_held for one in made)
            and sum(one.bytes for one in made) <= source.bytes
        )

    def _give_up(self, content: Content) -> None:
        """Nobody can ask for it any more, nor for what is computed from it."""
        if content.is_resident:
            self._backend.evict(content)
            self._leave(content)
        groups.returned(content)
        content.producer = None
