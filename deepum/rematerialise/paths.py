"""Contents that were evicted are computed again when they are used, with all that is missing on the
way to them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Unpack

from deepum.rematerialise import groups
from deepum.rematerialise.graph import Content, Operation
from deepum.rematerialise.heuristics import Heuristic
from deepum.rematerialise.residency import Backend, Residency, Selection
from deepum.rematerialise.way import Way

_MOST_ON_WAY = 32  # evicted contents between one and what is computed from it


def _evicted_from(content: Content) -> Iterator[Content]:
    return (one for reader in content.readers for one in reader.living() if one.is_evicted())


class _Step:
    """An operation on the way to a content: which of its inputs are locked, in order, and what
    keeps their memory.
    """

    __slots__ = ("held", "locked", "operation")

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.locked: list[Content] = []
        self.held: list[Any] = []


class Paths(Residency, ABC):
    """What the program reads is resident. How room is made for it is a subclass's."""

    def __init__(
        self,
        backend: Backend,
        heuristic: Heuristic | None = None,
        **selection: Unpack[Selection],
    ) -> None:
        super().__init__(backend, heuristic, **selection)
        self._transient: list[Content] = []  # computed again though the program let go of them
        self._depth = 0  # of paths that are followed, one within another
        self._way = Way()
        self._spares_way = True

    @abstractmethod
    def make_room(self, size: int) -> None:
        """So many bytes fit."""

    # What the program needs.

    def acquire(self, contents: Iterable[Content]) -> list[Content]:
        """All of them are resident and stay until `free_locks` of the list that is returned."""
        locked: list[Content] = []
        try:
            for one in contents:
                if not one.is_resident:
                    self.materialise(one)
                one.locks += 1
                locked.append(one)
        except BaseException:
            self.free_locks(locked)
            raise
        return locked

    def free_locks(self, contents: Iterable[Content]) -> None:
        """Of an `acquire`: they were used just now."""
        for one in contents:
            one.locks -= 1
            one.last_use = self.clock

    def materialise(self, content: Content) -> None:
        """The content is resident, computed again if it was evicted: with what it is computed from,
        from the sources up, without recursion.
        """
        while not content.is_resident:
            self._follow_path(content)

    def settle(self) -> None:
        """The program's operation is over: what was computed on the way to its inputs goes, unless
        more is computed from it.
        """
        kept: list[Content] = []
        for one in self._transient:
            if not one.is_resident or one.is_held:
                continue
            if self._serves_more(one):
                kept.append(one)
            else:
                self._backend.evict(one)
                self._leave(one)
        self._transient = kept

    # What leaves.

    def _spent(self) -> Content | None:
        """What was computed on the way to something else, and has served for that."""
        if not self._transient:
            return None
        self._transient = [one for one in self._transient if one.is_resident]
        for place, one in enumerate(self._transient):
            if not one.locks and one not in self._way and not self._serves_more(one):
                del self._transient[place]
                return one
        return None

    def _serves_more(self, content: Content) -> bool:
        """Whether something is evicted that the program has and that is computed from a content,
        over others that are evicted: to compute the content again for each takes longer than it is
        worth.
        """
        seen = {content}
        paths = [_evicted_from(content)]
        while paths:
            one = next(paths[-1], None)
            if one is None:
                paths.pop()
            elif one.is_held:
                return True
            elif one not in seen:
                if len(seen) > _MOST_ON_WAY:
                    return False
                seen.add(one)
                paths.append(_evicted_from(one))
        return False

    def _may_leave(self, content: Content) -> bool:
        return super()._may_leave(content) and not (self._spares_way and content in self._way)

    def _victim(self) -> Content | None:
        """What is read on the way to what is being computed leaves after all else."""
        found = super()._victim()
        if found is not None or not self._way:
            return found
        self._spares_way = False
        try:
            return super()._victim()
        finally:
            self._spares_way = True

    def _leave(self, content: Content) -> None:
        super()._leave(content)
        self._way.lose(content)

    # How it is computed.

    def _follow_path(self, content: Content) -> None:
        """Compute what is missing on the path to a content, and that; up to the first source that
        was given up for it, since that may have cut the path.
        """
        banished = self.counters.banished
        path = [_Step(self._producer(content))]
        self._depth += 1
        self._way.add(path[0].operation)
        try:
            while path and self.counters.banished == banished:
                missing = self._lock_inputs(path[-1])
                if missing is not None:
                    path.append(_Step(self._producer(missing)))
                    continue
                self._compute(path[-1].operation)
                self.free_locks(path.pop().locked)
        finally:
            self._depth -= 1
            if not self._depth:
                self._way.clear()
            for step in path:
                self.free_locks(step.locked)

    def _lock_inputs(self, step: _Step) -> Content | None:
        """The first input of a step that is not resident; None: all are, and stay."""
        for one in step.operation.inputs[len(step.locked) :]:
            held = self._backend.hold(one) if one.is_resident else None
            if held is None:
                if one.is_resident:
                    self.release(one)  # its memory went a moment ago
                return one
            one.locks += 1
            step.locked.append(one)
            step.held.append(held)
        return None

    @staticmethod
    def _producer(content: Content) -> Operation:
        if content.producer is None:
            raise AssertionError("a content is neither resident nor computable")
        return content.producer

    def _compute(self, operation: Operation) -> None:
        self.make_room(operation.room)
        wanted = [one for one in operation.living() if not one.is_resident]
        took = self._backend.compute(operation, wanted)
        self._way.remove(operation)
        if operation.overwrites is not None:
            self._leave(operation.overwrites)
        self.counters.recomputations += 1
        self.counters.recomputed_ns += took
        self.clock += took
        for one in wanted:
            if self.heuristic.uses_groups:
                groups.returned(one)
            one.is_resident = True
            one.recomputed += 1
            one.last_use = self.clock
            self.grow(one.bytes)
            self._offer(one)
            if not one.is_held:
                self._transient.append(one)
