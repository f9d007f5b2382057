"""A program under pressure whose faults are looked for, and a core that may duplicate its
blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deepum.core import BlockRange, Command, Core, CoreSettings, EventWriter
from deepum.core.records import FAULT_WRITE

ADVISE_ALL = 3
OLDEST_LAST_USE = 1
SET_READ_MOSTLY, UNSET_READ_MOSTLY = 1, 2
FAILED, CANCELLED = 2, 3


@dataclass(frozen=True)
class Step:
    """One launch."""

    execution: int
    unknown: tuple[BlockRange, ...] = ()
    written: tuple[BlockRange, ...] = ()
    read: tuple[BlockRange, ...] = ()
    stream: int = 0


def uses(execution: int, *where: BlockRange, stream: int = 0) -> Step:
    """A launch that does with its arguments what nobody said."""
    return Step(execution, unknown=where, stream=stream)


class Program:
    """A card of `capacity` UM blocks; allocations are slots 0, 1, ... of `sizes`. What was used
    longest ago leaves first.
    """

    def __init__(self, capacity: int, sizes: Sequence[int], **settings: int) -> None:
        changes = {
            "headroom_blocks": 0,
            "advice": ADVISE_ALL,
            "eviction_order": OLDEST_LAST_USE,
            **settings,
        }
        self.settings = CoreSettings.default(**changes)
        self.core, self.writer = Core(self.settings), EventWriter()
        self.writer.device(capacity)
        for slot, size in enumerate(sizes):
            self.writer.allocate(slot, size)
        self.seen: set[int] = {0}  # streams launched on

    def decided(self) -> list[Command]:
        """What the events written since command."""
        self.core.process(self.writer.take())
        return self.core.take_commands()

    def launch(self, step: Step) -> list[Command]:
        self.seen.add(step.stream)
        self.writer.execute(step.execution, step.unknown, step.stream, step.written, step.read)
        return self.decided()

    def look(self, *written: BlockRange) -> list[Command]:
        """All that was launched has completed; what of it was seen to fault when it was written is
        told.
        """
        reached = self.writer.sequence
        for stream in sorted(self.seen):
            self.writer.progress(stream, reached, reached)
        for where in written:
            self.writer.fault(where, access=FAULT_WRITE)
        return self.decided()

    def run(self, steps: Iterable[Step], times: int = 1, look: bool = True) -> list[Command]:
        """Iterations, with a look behind each."""
        commands = []
        for _ in range(times):
            for step in steps:
                commands += self.launch(step)
            commands += self.look() if look else []
        return commands


def blocks(
    commands: Iterable[Command], kind: str, advice: int | None = None
) -> list[tuple[int, int]]:
    """Slots and UM blocks that commands of a kind name, in order."""
    chosen = [c for c in commands if c.kind == kind and (advice is None or c.advice == advice)]
    return [
        (c.slot, block)
        for c in chosen
        for block in range(c.first_block, c.first_block + c.block_count)
    ]


def span(slot: int, first: int, count: int) -> list[tuple[int, int]]:
    return [(slot, block) for block in range(first, first + count)]
