"""How much managed memory a device holds, in plain Python: what native/core/memory/capacity.cpp does."""

from __future__ import annotations

from reference_block import UmBlock
from reference_commands import CORRELATION
from reference_memory import Allocation, Memory
from reference_remote import Remote
from reference_uses import SETTLED

from deepum.core import UM_BLOCK_BYTES, CoreSettings, Device, FreeMemory

WORTH_READING = 8  # of the capacity, the part allocated from which on readings are wanted
TOLERANCE = 8  # blocks
LOSS_SHARE = 64  # of the initial capacity, the part that an iteration's losses take off at most
LEAST_SHARE = 2  # and the part that they leave


class Capacity(Remote):
    """As reported, as free memory tells while it fills, and by what the driver evicts afterwards."""

    def __init__(self, settings: CoreSettings) -> None:
        super().__init__(settings)
        self.wants_free_memory = False

    def on_device(self, event: Device) -> None:
        memory = self.memory(event.device)
        if event.kind == "device":
            memory.room.withdrawn = 0
        memory.room.initial = min(event.total_bytes, event.capacity_bytes) // UM_BLOCK_BYTES
        self.set_capacity(memory, memory.room.initial - min(memory.room.initial, memory.room.withdrawn))
        if not memory.known:
            memory.withheld = memory.capacity // 2
        memory.known = True

    def set_capacity(self, memory: Memory, blocks: int) -> None:
        memory.capacity = blocks
        if memory.used > memory.capacity:
            memory.doubt_all_once()

    def withdraw(self, memory: Memory, capacity: int) -> None:
        memory.room.withdrawn = max(0, memory.room.initial - capacity)
        self.set_capacity(memory, memory.room.initial - memory.room.withdrawn)

    def note_fill_point(self) -> None:
        self.wants_free_memory = False
        for memory in self.devices.values():
            room = memory.room
            if not room.filling or self.settings.policy != CORRELATION:
                continue
            if not room.fill_points or room.fill_points[-1][1] != memory.migrations:
                room.fill_points.append((self.sequence, memory.migrations, room.commanded))
            full = memory.known and memory.allocated * WORTH_READING >= memory.capacity
            self.wants_free_memory |= full and self.learns()

    def on_free_memory(self, event: FreeMemory) -> None:
        memory = self.memory(event.device)
        room = memory.room
        if not memory.known or not room.filling:
            return
        gone = memory.migrations - memory.used

        def capacity(arrived: int) -> int:
            return max(0, max(0, arrived - gone) + event.free_bytes // UM_BLOCK_BYTES - event.reserve_bytes // UM_BLOCK_BYTES)

        begun, ahead = room.behind(event.begun)
        least, most = capacity(room.behind(event.completed)[0]), capacity(begun + room.commanded - ahead)
        if memory.capacity > most + TOLERANCE:
            self.withdraw(memory, most)
        elif memory.capacity + TOLERANCE < least and room.withdrawn:
            self.withdraw(memory, least)

    def was_taken(self, memory: Memory, allocation: Allocation, block: UmBlock) -> bool:
        """By the driver: it was to stay, and the faults of a launch that used it have been told before."""
        stays = block.resident and block.moved_in > block.moved_out and not (block.mostly or block.stays_away or block.mapped)
        was_there = 0 < block.first_use <= self.reported[block.first_stream]
        return memory.under_pressure() and not allocation.of_program and stays and was_there

    def note_taken(self, memory: Memory, blocks: int) -> None:
        room = memory.room
        self.taken_lately = True
        if not room.loss_window_start or self.position - room.loss_window_start > max(self.iteration, SETTLED):
            room.loss_window_start, room.loss_window_blocks = self.position, 0
        most = max(0, room.initial // LOSS_SHARE - room.loss_window_blocks)
        off = min(blocks, most, max(0, memory.capacity - room.initial // LEAST_SHARE))
        room.loss_window_blocks += off
        self.withdraw(memory, memory.capacity - off)
