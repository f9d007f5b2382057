"""A program with recomputation: its own items in their order, and between them memory that is given
back early, and the launches that compute it again before its next use.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from deepum.recomputation.closure import Closure, Content, closure
from deepum.recomputation.contents import (
    GiveBack,
    HandOut,
    Item,
    Operation,
    Other,
    Storage,
    looking_ahead,
)
from deepum.recomputation.dependence import Dependence
from deepum.recomputation.tape import Tape
from deepum.trace import work
from deepum.trace.allocator import Block

MOST_MADE = 64  # contents that are computed again for one that is needed
_NOTHING = -1  # version of a block that is about to be written over


class Chooser(Protocol):
    """Chooses what leaves."""

    def room(self, program: Rewriting, size: int) -> None:
        """So many bytes are about to be handed out: drops what it wants to."""

    def used(self, program: Rewriting, operation: Operation) -> None:
        """The program's own launch was launched."""

    def step(self, program: Rewriting, number: int) -> None:
        """The program's step of that number begins, from 0."""

    def end(self, program: Rewriting, number: int) -> None:
        """The last launch of that step was launched."""


@dataclass(slots=True)
class Holding:
    """Memory that the program has: `block` is None where it is dropped. `version`: of its content.
    `pins`: launches under way that need it where it is. `used_ns`, `used_bytes`: clocks at its
    latest use (Rewriting.clock_ns, clock_bytes).
    """

    block: Block | None
    version: int = 0
    pins: int = 0
    used_ns: int = 0
    used_bytes: int = 0


@dataclass
class Counters:
    """What was done: launches again and their time, contents dropped and their bytes."""

    launches: int = 0
    ns: int = 0
    drops: int = 0
    dropped_bytes: int = 0
    peak_bytes: int = 0


class Rewriting:
    """One program. `others`: slots of memory that is not PyTorch's."""

    def __init__(self, chooser: Chooser, others: Iterable[int] = ()) -> None:
        self.counters = Counters()
        self.held: dict[Storage, Holding] = {}
        self.dropped: set[Storage] = set()
        # Of launches that were launched, those again among them: their time, the sizes of what they
        # used.
        self.clock_ns = 0
        self.clock_bytes = 0
        self.step = 0
        self._chooser = chooser
        self._tape = Tape(set(others))
        self._temporary: dict[Content, Block] = {}  # made for others
        self._dependence = Dependence()
        self.changed: list[Content] = []  # came or went, since the chooser looked
        self._going: set[Content] = set()  # about to be given up, and there still

    @property
    def allocated_bytes(self) -> int:
        """In blocks that are handed out."""
        return self._tape.allocator.allocated_bytes

    def run(self, items: Iterable[Item]) -> Iterator[tuple[bytes, bytes]]:
        """The events and the work of each step, and of what comes behind the last."""
        self._chooser.step(self, 0)
        pinned: list[Holding] = []
        for item, ahead in looking_ahead(items):
            if isinstance(item, HandOut):
                if ahead is not None and not pinned:
                    pinned = self._pin_inputs(ahead)
                self.held[item.storage] = Holding(self._block(item.storage.bytes))
            elif isinstance(item, GiveBack):
                self._give_back(item.storage)
            elif isinstance(item, Operation):
                self._launch(item)
                for held in pinned:
                    held.pins -= 1
                pinned = []
                if item.work.kind == work.LAUNCH and item.work.flags & work.ENDS_STEP:
                    self._chooser.end(self, self.step)
                    self.step += 1
                    yield self._tape.take()
                    self._chooser.step(self, self.step)
            elif isinstance(item, Other):
                self._tape.other(item)
            else:
                self._tape.work(item)
        yield self._tape.take()

    # --- What a chooser asks and does

    def there(self, content: Content) -> bool:
        """Whether that content is in memory."""
        return self._is_held(content) or content in self._temporary

    def recomputed(self, storage: Storage, most_ns: float = math.inf) -> Closure | None:
        """What it would take to compute its content again if it was dropped now; None where that
        cannot be done, or would take longer.
        """
        version = self.held[storage].version
        return closure((storage, version), self._stays, MOST_MADE, most_ns) if version else None

    def drop(self, storage: Storage) -> bool:
        """Gives its memory back before the program does. Whether that could be done."""
        held = self.held[storage]
        if held.block is None or held.pins:
            return False
        found = self.recomputed(storage)
        if found is None or not self._lose((storage, held.version)):
            return False
        block, held.block = held.block, None
        self._tape.give_back(block)
        self.dropped.add(storage)
        self._dependence.add(storage, found.needs)
        self.counters.drops += 1
        self.counters.dropped_bytes += storage.bytes
        return True

    def synchronise(self) -> None:
        """Waits for the GPU."""
        self._tape.synchronise()

    def empty_cache(self) -> None:
        """Gives memory back to the driver that PyTorch's allocator has cached."""
        self._tape.empty_cache()

    # --- What the program does

    def _block(self, size: int) -> Block:
        self._chooser.room(self, size)
        block = self._tape.hand_out(size)
        self.counters.peak_bytes = max(self.counters.peak_bytes, self.allocated_bytes)
        return block

    def _pin_inputs(self, operation: Operation) -> list[Holding]:
        """What the next launch needs is not dropped for its outputs."""
        pinned = []
        for use in operation.uses:
            held = self.held.get(use.storage)
            if held is not None:
                held.pins += 1
                pinned.append(held)
        return pinned

    def _give_back(self, storage: Storage) -> None:
        held = self.held[storage]
        if held.block is None:
            self._dependence.discard(storage)
            self.dropped.discard(storage)
        else:
            self._give_up([(storage, held.version)])
            self._tape.give_back(held.block)
        del self.held[storage]

    def _launch(self, operation: Operation) -> None:
        pinned = self._pin_inputs(operation)
        for use in operation.uses:
            held = self.held[use.storage]
            if held.block is None:
                if use.reads is not None:
                    self._restore(use.storage)
                else:  # nothing that was there is needed: it is written over, or only named
                    self._dependence.discard(use.storage)
                    self.dropped.discard(use.storage)
                    held.version = _NOTHING
                    held.block = self._block(use.storage.bytes)
        self._give_up(
            [
                (use.storage, self.held[use.storage].version)
                for use in operation.uses
                if use.makes is not None
            ]
        )
        self._tape.launch(operation, self._place, ends_step=True)
        self._pass(operation)
        for use in operation.uses:
            held = self.held[use.storage]
            held.used_ns, held.used_bytes = self.clock_ns, self.clock_bytes
            if use.makes is not None:
                held.version = use.makes
        for held in pinned:
            held.pins -= 1
        self._chooser.used(self, operation)

    def _pass(self, operation: Operation) -> None:
        self.clock_ns += operation.ns
        self.clock_bytes += sum(use.storage.bytes for use in operation.uses)

    def _place(self, storage: Storage) -> Block:
        block = self.held[storage].block
        assert block is not None
        return block

    # --- What is computed again

    def _restore(self, storage: Storage) -> None:
        held = self.held[storage]
        found = closure((storage, held.version), self.there, 1 << 20)
        assert found is not None, "what is dropped can be computed again"
        last: dict[Content, int] = {}
        for at, content in enumerate(found.makes):
            for operation in content[0].recipe(content[1]):
                for needed in operation.inputs(content[0]) or ():
                    last[needed] = at
        pins: Counter[Content] = Counter()
        for needed in found.needs:
            self._pin(needed, 1)
            pins[needed] = 1
        for at, content in enumerate(found.makes):
            if not self.there(content):
                self._make(content, set(found.makes))
            if self._has(content):
                self._pin(content, 1)
                pins[content] = 1
            for needed, until in last.items():
                if until != at:
                    continue
                if pins[needed]:
                    self._pin(needed, -1)
                    pins[needed] = 0
                if needed in self._temporary:
                    self._tape.give_back(self._temporary.pop(needed))
                    self.changed.append(needed)
        for content, pinned in pins.items():
            if pinned:
                self._pin(content, -1)
        for content in [one for one in found.makes if one in self._temporary]:
            self._tape.give_back(self._temporary.pop(content))

    def _has(self, content: Content) -> bool:
        held = self.held.get(content[0])
        return held is not None and held.version == content[1]

    def _pin(self, content: Content, by: int) -> None:
        held = self.held.get(content[0])
        if held is not None:
            held.pins += by

    def _make(self, content: Content, wanted: set[Content]) -> None:
        """Computes it, all that its launches need being there."""
        storage, version = content
        block = self._block(storage.bytes)
        for operation in storage.recipe(version):
            places = {storage: block}
            spare = []
            made = []
            for use in operation.uses:
                other = use.storage
                if other in places:
                    continue
                if use.reads is not None:
                    places[other] = self._block_of((other, use.reads))
                    continue
                places[other] = self._block(other.bytes)
                result = (other, use.makes or 0)
                if (
                    use.makes is not None
                    and not self.there(result)
                    and len(other.recipe(use.makes)) == 1
                    and (result in wanted or self._is_dropped(result))
                ):
                    made.append((result, places[other]))
                else:
                    spare.append(places[other])
            self._tape.launch(operation, places.__getitem__, ends_step=False)
            self._pass(operation)
            self.counters.launches += 1
            self.counters.ns += operation.ns
            for given in spare:
                self._tape.give_back(given)
            for result, place in made:
                self._came(result, place)
        self._came(content, block)

    def _is_dropped(self, content: Content) -> bool:
        return content[0] in self.dropped and self._has(content)

    def _came(self, content: Content, block: Block) -> None:
        if self._is_dropped(content):
            held = self.held[content[0]]
            held.block = block
            held.used_ns, held.used_bytes = self.clock_ns, self.clock_bytes
            self._dependence.discard(content[0])
            self.dropped.discard(content[0])
        else:
            self._temporary[content] = block
        self.changed.append(content)

    def _block_of(self, content: Content) -> Block:
        temporary = self._temporary.get(content)
        if temporary is not None:
            return temporary
        return self._place(content[0])

    # --- What dropped contents are made of has to stay, or be computable itself

    def _is_held(self, content: Content) -> bool:
        held = self.held.get(content[0])
        return held is not None and held.block is not None and held.version == content[1]

    def _stays(self, content: Content) -> bool:
        return content not in self._going and self._is_held(content)

    def _without(self, content: Content, storage: Storage) -> Closure | None:
        """What that dropped storage is made of where the content is not there."""
        return closure(
            (storage, self.held[storage].version),
            lambda one: one != content and self._stays(one),
            MOST_MADE,
        )

    def _lose(self, content: Content) -> bool:
        """A content is about to go; False, and nothing done, where something dropped could not be
        computed without it.
        """
        found = {}
        for storage in self._dependence.needed_by(content):
            made = self._without(content, storage)
            if made is None:
                return False
            found[storage] = made
        for storage, made in found.items():
            self._dependence.add(storage, made.needs)
        self.changed.append(content)
        return True

    def _give_up(self, contents: Sequence[Content]) -> None:
        """The program gives contents up, all at once: what could not be computed without them is
        computed now.
        """
        self._going.update(contents)
        for content in contents:
            for storage in list(self._dependence.needed_by(content)):
                if storage in self.dropped and self._without(content, storage) is None:
                    self._pin(content, 1)
                    self._restore(storage)
                    self._pin(content, -1)
            if not self._lose(content):
                raise AssertionError("what is dropped can be computed without what is given up")
        self._going.difference_update(contents)
