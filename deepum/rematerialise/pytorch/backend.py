"""Memory and computation of contents that are PyTorch's storages (deepum.rematerialise.engine)."""

from __future__ import annotations

import bisect
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from deepum.pytorch.arguments import storage_of
from deepum.rematerialise.errors import RematerialisationError
from deepum.rematerialise.graph import Content, Operation
from deepum.rematerialise.pytorch.calls import Call
from deepum.rematerialise.pytorch.memory import (
    Homes,
    Memory,
    bytes_of,
    give_back,
    take_away,
)


def _digest(storage: Any, count: int) -> int:
    return zlib.crc32(torch._C.TensorBase.numpy(bytes_of(storage)[:count].cpu()))


def _allocated() -> int:
    """Bytes that the current GPU's allocator has ever handed out."""
    if not torch.cuda.is_initialized():
        return 0
    every = torch.cuda.memory_stats_as_nested_dict()
    return int(every["allocated_bytes"]["all"]["allocated"]) if every else 0


class TensorBackend:
    """verify: what is computed again is compared with what was evicted, by checksums."""

    def __init__(self, homes: Homes, verify: bool) -> None:
        self._homes = homes
        self._sources: dict[int, Content] = {}
        self._verify = verify
        self.counts_allocated = False  # which takes time
        self.allocated = 0  # bytes of a GPU's memory that computing again has allocated

    def evict(self, content: Content) -> None:
        """Free its memory; nothing if the storage died meanwhile."""
        memory: Memory = content.handle
        storage = self.hold(content)
        if self._verify and storage is not None:
            memory.digest = _digest(storage, memory.defined)
        if memory.own is not None:
            memory.own = None
        elif storage is not None:
            take_away(storage)

    def compute(self, operation: Operation, wanted: Sequence[Content]) -> float:
        """Call the operator again, and put its results where they belong."""
        before = _allocated() if self.counts_allocated else 0
        call: Call = operation.payload
        storages = [one.handle.storage() for one in operation.inputs]
        if call.made is None:
            result = self._changed(operation, call, storages)
            made = {id(one): result for one in wanted}
        else:
            tensors = call.again(storages)
            outputs = [reference() for reference in operation.outputs]
            made = {
                id(content): storage_of(tensors[place])
                for content, place in zip(outputs, call.made, strict=True)
                if content is not None
            }
        del storages
        for one in wanted:
            self._put(one, made[id(one)], call)
        if self.counts_allocated:
            self.allocated += _allocated() - before
        return operation.cost

    @staticmethod
    def _changed(operation: Operation, call: Call, storages: list[Any]) -> Any:
        """What an operator makes in place: of what it was, which is used up, or of new memory."""
        if operation.overwrites is None:
            device = call.device
            result = storage_of(torch.empty(call.fresh, dtype=torch.uint8, device=device))
            storages.append(result)
        else:
            old = operation.overwrites
            result = storages[operation.inputs.index(old)]
            old.handle.own = None
        call.again(storages)
        return result

    def _put(self, content: Content, storage: Any, call: Call) -> None:
        memory: Memory = content.handle
        if memory.digest is not None and _digest(storage, memory.defined) != memory.digest:
            raise RematerialisationError(
                f"{call.function}: gives other bits when it is called again with the same "
                "arguments; report it, and run without deepum.remat"
            )
        home = memory.home() if memory.home is not None else None
        if home is None:
            memory.own = storage
        else:
            give_back(home, storage)

    def hold(self, content: Content) -> Any:
        """Its storage; None if the program let go of that."""
        memory: Memory = content.handle
        if memory.own is not None:
            return memory.own
        return memory.home() if memory.home is not None else None

    def keep(self, operation: Operation, content: Content) -> None:
        """The operation holds the storage of a source."""
        operation.held.append(content.handle.storage())
        self.note_source(content)

    def note_source(self, content: Content) -> None:
        """An operation holds its storage, so that it may be abandoned one day."""
        self._sources[id(content)] = content

    def forget_sources(self) -> None:
        """No operation is known any more."""
        self._sources.clear()

    def free_beside(self, content: Content) -> int:
        """Bytes between its memory and the next storages that are known, on both sides; 2 MiB at
        most each, which is how far allocators reach.
        """
        places = sorted(
            (storage.data_ptr(), storage.nbytes())
            for home, storage in self._homes.living()
            if home.content.is_resident and storage.nbytes()
        )
        storage = content.handle.storage()
        begin, end = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        place = bisect.bisect_left(places, (begin, 0))
        most = 1 << 21
        before = begin - sum(places[place - 1]) if place else most
        after = places[place + 1][0] - end if place + 1 < len(places) else most
        return min(max(before, 0), most) + min(max(after, 0), most)

    def abandoned(self) -> Iterable[Content]:
        """Sources whose storage no tensor has any more."""
        found = []
        for content in list(self._sources.values()):
            storage = self.hold(content)
            if storage is None or not content.readers:
                del self._sources[id(content)]
            elif torch._C._storage_Use_Count(storage._cdata) <= 1:
                found.append(content)
        return sorted(found, key=lambda one: -one.bytes)
