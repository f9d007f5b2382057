"""Memory and computation of contents that are storages of a recorded program
(deepum.rematerialise.engine): blocks of PyTorch's allocator on a tape, and launches on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deepum.recomputation import contents
from deepum.recomputation.contents import Storage
from deepum.recomputation.tape import Tape
from deepum.rematerialise.graph import Content, Operation
from deepum.trace.allocator import Block

_REACH = 1 << 21  # how far free bytes beside a block count


@dataclass(slots=True, eq=False)
class Memory:
    """Of a content: `block` is None while it is not resident."""

    storage: Storage
    block: Block | None = None


class TraceBackend:
    """`held`: by storage that the program has, its content. `launches`: launched again so far."""

    def __init__(self, tape: Tape) -> None:
        self.held: dict[Storage, Content] = {}
        self.launches = 0
        self._tape = tape
        self._abandoned: dict[Content, None] = {}  # in the order in which the program let go

    # What the program does.

    def hand_out(self, storage: Storage) -> Content:
        """A block for it, of which nothing is known."""
        content = Content(storage.bytes, Memory(storage), "memory that is not written yet")
        content.handle.block = self._tape.hand_out(storage.bytes)
        self.held[storage] = content
        return content

    def launch(self, operation: contents.Operation) -> None:
        """The program's own, on what it has, all of it resident."""
        self._tape.launch(operation, self._own_block, ends_step=True)

    def _own_block(self, storage: Storage) -> Block:
        return _block(self.held[storage])

    def renew(self, storage: Storage) -> Content:
        """Its memory has another content from now on."""
        old = self.held[storage]
        block, old.handle.block = old.handle.block, None
        self.held[storage] = content = Content(storage.bytes, Memory(storage, block))
        return content

    def give_back(self, storage: Storage) -> tuple[Content, bool]:
        """The program lets go of it: its content, and whether its memory is free; else what can be
        computed of it keeps that.
        """
        content = self.held.pop(storage)
        if content.is_resident:
            if content.producer is None and content.readers:
                self._abandoned[content] = None
                return content, False
            self.evict(content)
        return content, True

    def forgotten(self) -> Iterable[Content]:
        """Of what the program let go, that of which nothing is computed any more: its memory is
        free now.
        """
        return [one for one in list(self._abandoned) if self.hold(one) is None]

    # What the engine asks.

    def evict(self, content: Content) -> None:
        """Give its block back."""
        self._tape.give_back(_block(content))
        content.handle.block = None

    def compute(self, operation: Operation, wanted: Sequence[Content]) -> float:
        """Launch it again: into blocks of their own what is wanted, into spare ones the rest."""
        launch: contents.Operation = operation.payload
        places = {one.handle.storage: _block(one) for one in operation.inputs}
        spare: dict[Storage, Block] = {}
        for use in launch.uses:
            storage = use.storage
            if storage not in places:
                named = self.held.get(storage) if use.makes is None else None
                if named is not None and named.is_resident:
                    places[storage] = _block(named)  # it is told of, and not touched
                else:
                    places[storage] = spare[storage] = self._tape.hand_out(storage.bytes)
        if operation.overwrites is not None:
            old: Memory = operation.overwrites.handle
            old.block, spare[old.storage] = None, places[old.storage]
        self._tape.launch(launch, places.__getitem__, ends_step=False)
        for one in wanted:
            one.handle.block = spare.pop(one.handle.storage)
        for block in spare.values():
            self._tape.give_back(block)
        self.launches += 1
        return operation.cost

    def hold(self, content: Content) -> Content | None:
        """None if the program let go of it, and nothing is computed of it any more."""
        if content in self._abandoned and not content.readers:
            del self._abandoned[content]
            self.evict(content)
            return None
        return content

    def keep(self, operation: Operation, content: Content) -> None:
        """Nothing: what the program lets go stays while something is computed of it."""

    def abandoned(self) -> Iterable[Content]:
        """What stays for that."""
        return sorted(self._abandoned, key=lambda one: -one.bytes)

    def free_beside(self, content: Content) -> int:
        """Bytes that are free next to its block."""
        block = _block(content)
        near = (block.before, block.after)
        return sum(min(one.bytes, _REACH) for one in near if one is not None and one.free)


def _block(content: Content) -> Block:
    block: Block | None = content.handle.block
    if block is None:
        raise AssertionError("a content that is used is resident")
    return block
