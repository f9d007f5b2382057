"""Follows a recorded program under the engine of rematerialisation: its own items in their order,
and between them what the engine evicts and computes again.

A version of a storage is a content, a launch an operation. What cannot be computed again is a
source: what comes from the host, what several things are changed in place for, and what outlives a
step, from its end on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from deepum.core import Allocate, Free
from deepum.recomputation.backend import TraceBackend
from deepum.recomputation.contents import (
    GiveBack,
    HandOut,
    Item,
    Operation,
    Other,
    Storage,
    looking_ahead,
)
from deepum.recomputation.tape import Tape
from deepum.rematerialise import graph
from deepum.rematerialise.engine import Engine
from deepum.rematerialise.graph import Content
from deepum.trace import work


class Steps(Protocol):
    """Is told of steps, and may change the engine's budget there."""

    def begin(self, number: int) -> None:
        """The program's step of that number begins, from 0."""

    def end(self, number: int) -> None:
        """The last launch of that step was launched."""


class NoSteps:
    """Nothing depends on steps."""

    def begin(self, number: int) -> None:
        """Nothing."""

    def end(self, number: int) -> None:
        """Nothing."""


class Following:
    """One program. `engine`: on `backend`, which writes to `tape`."""

    def __init__(
        self, engine: Engine, backend: TraceBackend, tape: Tape, steps: Steps | None = None
    ) -> None:
        self.step = 0
        self._engine = engine
        self._backend = backend
        self._tape = tape
        self._steps: Steps = steps or NoSteps()
        self._locked: dict[Storage, Content] = {}
        self._others: dict[int, int] = {}  # bytes by slot

    def run(self, items: Iterable[Item]) -> Iterator[tuple[bytes, bytes]]:
        """The events and the work of each step, and of what comes behind the last. Raises
        BudgetError where the engine's budget is too small.
        """
        self._steps.begin(0)
        for item, ahead in looking_ahead(items):
            if isinstance(item, HandOut):
                self._hand_out(item.storage, ahead)
            elif isinstance(item, GiveBack):
                self._give_back(item.storage)
            elif isinstance(item, Operation):
                self._launch(item)
                if item.work.kind == work.LAUNCH and item.work.flags & work.ENDS_STEP:
                    self._end_step()
                    yield self._tape.take()
                    self._steps.begin(self.step)
            elif isinstance(item, Other):
                self._other(item)
            else:
                self._tape.work(item)
        yield self._tape.take()

    def _hand_out(self, storage: Storage, ahead: Operation | None) -> None:
        if ahead is not None:
            self._lock(ahead)
        self._block(storage)

    def _block(self, storage: Storage) -> None:
        self._forget()
        self._engine.make_room(storage.bytes)
        self._engine.add(self._backend.hand_out(storage))

    def _give_back(self, storage: Storage) -> None:
        content = self._backend.held[storage]
        if content.is_resident and content.producer is not None:
            self._engine.before_release(content)
        content, is_free = self._backend.give_back(storage)
        if is_free:
            self._engine.release(content)
        else:
            self._engine.abandon(content)
        self._forget()

    def _forget(self) -> None:
        for content in self._backend.forgotten():
            self._engine.release(content)

    def _lock(self, operation: Operation) -> None:
        """What the launch needs of what the program has is there, and stays."""
        held = self._backend.held
        wanted = [
            held[use.storage]
            for use in operation.uses
            if use.storage in held
            and use.storage not in self._locked
            and (held[use.storage].is_resident or use.reads is not None or use.makes is None)
        ]
        wanted.sort(key=lambda one: not one.is_resident)
        for content in self._engine.acquire(wanted):
            self._locked[content.handle.storage] = content

    def _launch(self, operation: Operation) -> None:
        engine, held = self._engine, self._backend.held
        self._lock(operation)
        for use in operation.uses:
            if use.storage not in self._locked:  # it is evicted, and written over
                engine.release(held[use.storage])
                self._block(use.storage)
        self._lock(operation)
        for use in operation.uses:
            content = held[use.storage]
            if use.makes is not None and content.producer is None and content.readers:
                engine.overwrite(content)
        self._backend.launch(operation)
        engine.elapse(operation.ns)
        self._record(operation)
        engine.free_locks(self._locked.values())
        self._locked.clear()
        engine.settle()

    def _record(self, operation: Operation) -> None:
        """What the launch made are new contents, and can be computed again if it can."""
        held = self._backend.held
        inputs = [held[use.storage] for use in operation.uses if use.reads is not None]
        changed = [
            use.storage for use in operation.uses if use.reads is not None and use.makes is not None
        ]
        repeatable = operation.repeatable and (
            not changed
            or (
                len(changed) == 1
                and held[changed[0]].producer is not None
                and not self._outlives(changed[0])
            )
        )
        overwrites = held[changed[0]] if repeatable and changed else None
        made, computable, room = [], [], 0
        for use in operation.uses:
            if use.makes is None:
                continue
            room += use.storage.bytes if use.reads is None else 0
            old = held[use.storage]
            new = self._backend.renew(use.storage)
            self._engine.release(old)
            made.append(new)
            if not self._outlives(use.storage):
                computable.append(new)
        if repeatable and computable:
            graph.Operation(
                tuple(inputs), tuple(computable), operation.ns, operation, overwrites, room
            )
        for new in made:
            self._engine.add(new)

    def _outlives(self, storage: Storage) -> bool:
        return storage.step < self.step

    def _end_step(self) -> None:
        self._steps.end(self.step)
        self.step += 1
        for content in list(self._backend.held.values()):
            if content.is_resident and content.producer is not None:
                self._engine.pin(content, "outlives a step")

    def _other(self, one: Other) -> None:
        """Memory that is not PyTorch's takes its part of the budget."""
        if isinstance(one.event, Allocate):
            self._others[one.event.slot] = one.event.bytes
            self._engine.make_room(one.event.bytes)
            self._engine.grow(one.event.bytes)
        elif isinstance(one.event, Free):
            self._engine.grow(-self._others.pop(one.event.slot, 0))
        self._tape.other(one)
