"""PyTorch's blocks in plain Python: named by size and the lowest free ordinal, dead once they are taken back."""

from __future__ import annotations

import bisect

from reference_ahead import Ahead
from reference_block import Name, Place, Run, Use
from reference_history import MASK, mix
from reference_memory import Allocation, Regularity, TorchBlock, UmBlock

from deepum.core import UM_BLOCK_BYTES, Block, CoreSettings

SMALL_POOL = 1 << 20


class TorchBlocks(Ahead):
    """What PyTorch says of its memory."""

    def __init__(self, settings: CoreSettings) -> None:
        super().__init__(settings)
        self.free_ordinals: dict[int, list[int]] = {}
        self.next_ordinal: dict[int, int] = {}

    def on_block(self, event: Block) -> None:
        allocation = self.allocations.get(event.slot)
        if allocation is None or allocation.generation != event.generation or not event.bytes:
            return
        if event.offset + event.bytes > allocation.bytes:
            return
        allocation.reported = True
        known = event.offset in allocation.active
        if known:
            self.forget_torch_block(allocation.active.pop(event.offset))
        if event.kind == "block_active":
            key = -(-event.bytes // UM_BLOCK_BYTES) << 8 | allocation.device
            free = self.free_ordinals.setdefault(key, [])
            if free:
                ordinal = free.pop(0)
            else:
                ordinal = self.next_ordinal.get(key, 0)
                self.next_ordinal[key] = ordinal + 1
            name = ("torch", key, ordinal)
            allocation.active[event.offset] = TorchBlock(self.position, event.bytes, ordinal, key, name)
            self.bound[name] = (event.slot, (allocation.first_offset + event.offset) // UM_BLOCK_BYTES)
            self.mark_alive(allocation, event.offset, event.offset + event.bytes)
        elif known:
            self.mark_dead(allocation, event.offset, event.offset + event.bytes)
        on_device = (other for other in self.allocations.values() if other.device == allocation.device)
        self.mismatches += sum(block.bytes for other in on_device for block in other.active.values()) != event.allocated_bytes

    @staticmethod
    def lying_in(allocation: Allocation, begin: int, end: int) -> list[UmBlock]:
        """UM blocks with any of the allocation's bytes [begin, end)."""
        origin = allocation.first_offset
        return allocation.blocks[(origin + begin) // UM_BLOCK_BYTES : -(-(origin + end) // UM_BLOCK_BYTES)]

    def mark_alive(self, allocation: Allocation, begin: int, end: int) -> None:
        for block in self.lying_in(allocation, begin, end):
            if block.dead:
                self.memory(allocation.device).grown += block.resident
                block.fresh = not block.resident
                block.filled = self.position
            block.written_at = self.position  # what comes will be
            if block.mostly:
                self.collapse(block)
            block.dead = False
            self.forget_sparse_uses(block)
            if block.resident and block.place is Place.DEAD:
                self.memory(allocation.device).spare(block, self.position)

    def mark_dead(self, allocation: Allocation, begin: int, end: int) -> None:
        memory = self.memory(allocation.device)
        stretch_end = min((offset for offset in allocation.active if offset >= begin), default=allocation.bytes)
        before = max((offset for offset in allocation.active if offset < begin), default=None)
        stretch = 0 if before is None else before + allocation.active[before].bytes
        for block in self.lying_in(allocation, begin, end):
            at = block.index * UM_BLOCK_BYTES - allocation.first_offset
            if at < stretch or at + UM_BLOCK_BYTES > stretch_end:
                continue
            memory.grown -= not (block.fresh or block.dead)
            memory.died_away += not (block.fresh or block.dead or block.resident)
            block.dead, block.died = True, self.sequence
            memory.uncopy(block)
            self.learn_next(block, Use.DIES, leaves=False)
            block.user, block.awaited = None, 0
            if block.resident:
                block.again = 0
                if self.drops_dead():
                    memory.put(block, Place.DEAD, block.use_position)
                elif block.place is Place.EXPECTED:
                    memory.put(block, Place.KEPT, block.use_position)
            elif block.populated and self.discardable(block):
                self.discard(block)

    def forget_torch_block(self, block: TorchBlock) -> None:
        bisect.insort(self.free_ordinals[block.key], block.ordinal)
        self.bound.pop(block.name, None)

    def name_run(self, allocation: Allocation, first: int, count: int) -> tuple[Run, int, Regularity]:
        """The run by name, after how many launches what bears the name was handed out, and when it is used."""
        begin, end = first * UM_BLOCK_BYTES, (first + count) * UM_BLOCK_BYTES
        best, most = None, 0
        # Only from the block that begins last before the run; blocks do not overlap.
        offsets, origin = sorted(allocation.active), allocation.first_offset
        start = max(0, bisect.bisect_right(offsets, max(0, begin - origin)) - 1)
        for offset in offsets[start:]:
            block = allocation.active[offset]
            low, high = origin + offset, origin + offset + block.bytes
            if high <= begin or low >= end:
                continue
            exact = low >= begin and high <= end and low // UM_BLOCK_BYTES == first and (high - 1) // UM_BLOCK_BYTES == first + count - 1
            size = min(high, end) - max(low, begin) + (end if exact else 0)
            if size > most:
                best, most = block, size
        if best is None or best.bytes <= SMALL_POOL or best.name not in self.bound or self.bound[best.name][1] > first:
            return (allocation.name, first, count), allocation.born, allocation.regularity
        return (best.name, first - self.bound[best.name][1], count), best.born, best.regularity

    def name_hash(self, name: Name) -> int:
        return mix(mix(name[1] ^ 0x50794254726F6368) + name[2] & MASK)  # type: ignore[misc]
