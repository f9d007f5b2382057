"""A machine that knows what the host has of what the device has, and what launches write:
duplicates as the driver makes and ends them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from driving import Session
from duplicating import SET_READ_MOSTLY, UNSET_READ_MOSTLY
from mover import BRINGS, Key, Machine

from deepum.core import BlockRange, Command
from deepum.core.records import FAULT_WRITE


@dataclass
class DuplicatingMachine(Machine):
    """`writers`: kernels that write all they touch."""

    writers: set[int] = field(default_factory=set)
    mostly: set[Key] = field(default_factory=set)  # READ_MOSTLY
    copies: set[Key] = field(default_factory=set)  # the host has the same
    write_faults: list[Key] = field(default_factory=list)  # since they were told
    copied: int = 0  # blocks, ahead or when they left
    late: int = 0  # copied when they left although they were to be dropped
    reached: int = 0  # sequence of the latest launch that ran

    def move(self, command: Command) -> None:
        keys = [
            (command.slot, block)
            for block in range(command.first_block, command.first_block + command.block_count)
        ]
        if command.kind == "advise" and command.advice == SET_READ_MOSTLY:
            self.mostly.update(keys)
        if command.kind == "collapse" or (
            command.kind == "evict" and command.advice == UNSET_READ_MOSTLY
        ):
            self.mostly.difference_update(keys)
            self.copies.difference_update(keys)
        if command.kind == "copy_out":
            self.mostly.update(keys)
        for key in keys:
            leaves = key in self.resident and command.kind in ("copy_out", "evict", "drop")
            self.copied += leaves and key not in self.copies
            self.late += leaves and key not in self.copies and command.kind == "drop"
            arrives = command.kind in BRINGS and key not in self.resident
            if (leaves and command.kind == "copy_out") or (arrives and key in self.mostly):
                self.copies.add(key)
            elif command.kind in ("evict", "drop"):
                self.copies.discard(key)
        super().move(command)

    def run_launch(self) -> None:
        event = self.launched[0]
        super().run_launch()
        self.reached = event.sequence
        if event.execution_hash in self.writers:
            written = {
                (r.slot, block) for r in event.ranges for block in range(r.first, r.first + r.count)
            }
            self.write_faults += sorted(written & self.copies)
            self.copies -= written


class LookingSession(Session):
    """A program whose faults are told."""

    machine: DuplicatingMachine

    def look(self) -> int:
        """Tells how far the machine is, and what faulted by a write since; how many that were."""
        found, self.machine.write_faults = self.machine.write_faults, []
        self.writer.progress(0, self.machine.reached, self.machine.reached)
        for slot, block in found:
            self.writer.fault(BlockRange(slot, block, 1), access=FAULT_WRITE)
        self.core.process(self.writer.take())
        assert self.core.take_commands() == []
        return len(found)
