"""What is allocated: slots, PyTorch's blocks in them, and the names by which both are learned."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field

from deepum.core import UM_BLOCK_BYTES, Allocate, Block, BlockRange
from reference.clock import Clock
from reference.memory.torch_blocks import TorchBlockNames
from reference.memory.um_block import Name, Run, Span, UmBlock

MOST_IRREGULAR = 6  # uses in a row at another time
# Parts of an iteration after which a use is of another burst, and which a burst may take.
BURST_SHARE, PERIOD_TOLERANCE = 16, 8
MOST_SMALL_BYTES = 1 << 20  # PyTorch's blocks up to there are of its small pool
OF_PROGRAM = 1


@dataclass
class Regularity:
    """Whether all of its uses come close together, once an iteration."""

    last: int = 0  # launch that used it last,
    burst_began: int = 0  # the first of that burst,
    last_irregular: int = 0  # and the last one at another time,
    irregular_in_a_row: int = 0  # of which so many came in a row

    def note(self, launch: int, iteration: int) -> bool:
        """True: it is not the first time that they come otherwise."""
        gap = launch - self.last
        another = not self.last or gap > iteration // BURST_SHARE
        tolerance = iteration // PERIOD_TOLERANCE
        irregular = bool(
            self.last
            and iteration
            and (gap < iteration - tolerance if another else launch - self.burst_began > tolerance)
        )
        self.last, self.burst_began = launch, launch if another else self.burst_began
        in_a_row = min(self.irregular_in_a_row + 1, MOST_IRREGULAR)
        self.irregular_in_a_row = (
            in_a_row if irregular else 0 if another else self.irregular_in_a_row
        )
        self.last_irregular = launch if irregular else self.last_irregular
        return self.irregular_in_a_row == MOST_IRREGULAR

    def once_an_iteration(self, launch: int, iteration: int) -> bool:
        lately = self.last != 0 and launch - self.last <= iteration + iteration // PERIOD_TOLERANCE
        return lately and (not self.last_irregular or launch - self.last_irregular > 2 * iteration)


@dataclass
class TorchBlock:
    """One that is handed out."""

    bytes: int
    name: Name
    born: int  # the latest launch then
    regularity: Regularity = field(default_factory=Regularity)


@dataclass
class Allocation:
    generation: int
    device: int
    of_program: bool
    name: Name
    bytes: int
    born: int  # the latest launch then
    blocks: list[UmBlock]
    first_offset: int = 0  # of its first byte in UM block 0
    active: dict[int, TorchBlock] = field(default_factory=dict)  # by offset
    reported: bool = False  # PyTorch reports blocks of it
    regularity: Regularity = field(default_factory=Regularity)

    def overlapping_blocks(self, begin: int, end: int) -> list[UmBlock]:
        """UM blocks with any of its bytes [begin, end)."""
        origin = self.first_offset
        return self.blocks[
            (origin + begin) // UM_BLOCK_BYTES : -(-(origin + end) // UM_BLOCK_BYTES)
        ]

    def whole_blocks(self, begin: int, end: int) -> list[UmBlock]:
        """UM blocks of which the range has all bytes."""
        origin = self.first_offset
        return self.blocks[
            -(-(origin + begin) // UM_BLOCK_BYTES) : (origin + end) // UM_BLOCK_BYTES
        ]


class ContentListener:
    """Hears of each block in turn. Listeners hear in the order in which they were added: commands
    come out in it.
    """

    # All of it became inactive PyTorch memory; it was not before where `died_now`.
    def content_died(self, block: UmBlock, died_now: bool) -> None: ...
    # Memory of it is handed out. It still says whether it was dead.
    def content_begins(self, block: UmBlock) -> None: ...
    # The allocation ends, with all of its blocks.
    def memory_gone(self, allocation: Allocation) -> None: ...


class AddressSpace:
    """What the end or the beginning of content means is for listeners to say."""

    def __init__(self, now: Clock) -> None:
        self.now = now
        self.allocations: dict[int, Allocation] = {}
        # Slot and first UM block of what bears the name.
        self.places: dict[Name, tuple[int, int]] = {}
        self.torch_names = TorchBlockNames()
        self.block_mismatches = 0  # reports of PyTorch's that do not add up
        self.listeners: list[ContentListener] = []

    def allocate(self, event: Allocate) -> None:
        if event.slot in self.allocations:
            self.forget(event.slot)
        origin = event.first_offset % UM_BLOCK_BYTES
        count = -(-(origin + event.bytes) // UM_BLOCK_BYTES)
        name, of_program = ("allocation", event.name), bool(event.flags & OF_PROGRAM)
        blocks = [
            UmBlock(event.slot, i, event.generation, event.device, of_program) for i in range(count)
        ]
        made = Allocation(
            event.generation,
            event.device,
            of_program,
            name,
            event.bytes,
            self.now.launch,
            blocks,
            origin,
        )
        self.allocations[event.slot] = made
        self.places[name] = (event.slot, 0)

    def release(self, slot: int, generation: int) -> None:
        if slot in self.allocations and self.allocations[slot].generation == generation:
            self.forget(slot)

    def forget_everything(self) -> None:
        for slot in sorted(self.allocations):
            self.forget(slot)

    def forget(self, slot: int) -> None:
        allocation = self.allocations[slot]
        for listener in self.listeners:
            listener.memory_gone(allocation)
        for torch_block in allocation.active.values():
            self.forget_torch_block(torch_block)
        self.places.pop(allocation.name, None)
        del self.allocations[slot]

    def forget_torch_block(self, block: TorchBlock) -> None:
        self.torch_names.give_back(block.name)
        self.places.pop(block.name, None)

    def report(self, event: Block) -> None:
        """PyTorch handed a block out, or took it back: what is not handed out is dead."""
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
            name = self.torch_names.take(allocation.device, event.bytes)
            allocation.active[event.offset] = TorchBlock(event.bytes, name, self.now.launch)
            self.places[name] = (
                event.slot,
                (allocation.first_offset + event.offset) // UM_BLOCK_BYTES,
            )
            self.begin_content(allocation, event.offset, event.offset + event.bytes)
        elif known:
            self.end_content(allocation, event.offset, event.offset + event.bytes)
        on_device = (
            other for other in self.allocations.values() if other.device == allocation.device
        )
        self.block_mismatches += (
            sum(block.bytes for other in on_device for block in other.active.values())
            != event.allocated_bytes
        )

    def begin_content(self, allocation: Allocation, begin: int, end: int) -> None:
        for block in allocation.overlapping_blocks(begin, end):
            for listener in self.listeners:
                listener.content_begins(block)
            if block.dead:
                block.fresh = not block.resident
                block.filled = self.now.launch
                block.dead = False

    def end_content(self, allocation: Allocation, begin: int, end: int) -> None:
        """Of all UM blocks of the inactive stretch around the range that have bytes of it."""
        stretch_end = min(
            (offset for offset in allocation.active if offset >= begin), default=allocation.bytes
        )
        before = max((offset for offset in allocation.active if offset < begin), default=None)
        stretch = 0 if before is None else before + allocation.active[before].bytes
        for block in allocation.overlapping_blocks(begin, end):
            at = block.index * UM_BLOCK_BYTES - allocation.first_offset
            if at < stretch or at + UM_BLOCK_BYTES > stretch_end:
                continue
            died_now = not block.dead
            block.dead, block.died = True, self.now.event
            for listener in self.listeners:
                listener.content_died(block, died_now)

    def resolve(self, where: BlockRange) -> Allocation | None:
        """The allocation that the range lies in."""
        allocation = self.allocations.get(where.slot)
        return (
            allocation
            if allocation and where.first + where.count <= len(allocation.blocks)
            else None
        )

    def blocks(self, span: Span) -> list[UmBlock]:
        slot, first, count = span
        return self.allocations[slot].blocks[first : first + count]

    def middle(self, span: Span) -> UmBlock:
        slot, first, count = span
        return self.allocations[slot].blocks[first + count // 2]

    def lives(self, block: UmBlock) -> bool:
        allocation, index = self.allocations.get(block.slot), block.index
        return (
            allocation is not None
            and index < len(allocation.blocks)
            and allocation.blocks[index] is block
        )

    def name_run(
        self, allocation: Allocation, first: int, count: int
    ) -> tuple[Run, int, Regularity]:
        """The run by name, the launch after which what bears the name was handed out, and when that
        is used.
        """
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
            exact = (
                low >= begin
                and high <= end
                and low // UM_BLOCK_BYTES == first
                and (high - 1) // UM_BLOCK_BYTES == first + count - 1
            )
            size = min(high, end) - max(low, begin) + (end if exact else 0)
            if size > most:
                best, most = block, size
        if (
            best is None
            or best.bytes <= MOST_SMALL_BYTES
            or best.name not in self.places
            or self.places[best.name][1] > first
        ):
            return (allocation.name, first, count), allocation.born, allocation.regularity
        return (best.name, first - self.places[best.name][1], count), best.born, best.regularity

    def locate(self, run: Run) -> Span | None:
        """Where it is now; None: its memory was freed."""
        name, first, count = run
        if name not in self.places:
            return None
        slot, origin = self.places[name]
        most = len(self.allocations[slot].blocks) - origin - first
        return (slot, origin + first, min(count, most)) if most > 0 else None
