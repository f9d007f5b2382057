"""A core, a program and a machine in lock-step: each launch waits for its decisions, and for the
moves that nothing holds back.
"""

from __future__ import annotations

from collections.abc import Sequence

from mover import Machine
from programs import Launch

from deepum.core import Core, CoreSettings, EventWriter, Execute, events


class Session:
    """One program. Allocations are slots 0, 1, ... of `sizes` UM blocks."""

    def __init__(self, machine: Machine, sizes: Sequence[int], **changes: int) -> None:
        self.machine = machine
        self.core, self.writer = (
            Core(CoreSettings.default(**{"launch_queue": 0, **changes})),
            EventWriter(),
        )
        self.writer.device(machine.capacity)
        for slot, size in enumerate(sizes):
            self.writer.allocate(slot, size)
        self.core.process(self.writer.take())

    def launch(self, launch: Launch) -> None:
        """One launch, after all moves that may go before it."""
        self.writer.execute(launch.execution, launch.ranges, launch.stream)
        records = self.writer.take()
        self.core.process(records)
        (event,) = events(records)
        assert isinstance(event, Execute)
        self.machine.launch(event, self.core.take_commands())
        self.machine.advance(1 << 30)
        self.machine.run_launch()

    def wait(self) -> None:
        """The program waits for all its work; moves go on meanwhile."""
        self.writer.synchronise()
        self.core.process(self.writer.take())
        for command in self.core.take_commands():
            self.machine.give(command)
        self.machine.advance(1 << 30)

    def step(self, launches: Sequence[Launch]) -> int:
        """An iteration or a part of one; returns how many blocks its launches missed."""
        before = self.machine.faults
        for launch in launches:
            self.launch(launch)
        return self.machine.faults - before

    def believed(self, launches: Sequence[Launch]) -> set[tuple[int, int]]:
        """The blocks of these launches that the core believes resident."""
        blocks = {
            (r.slot, block)
            for launch in launches
            for r in launch.ranges
            for block in range(r.first, r.first + r.count)
        }
        return {key for key in blocks if self.core.block_state(*key) & Core.RESIDENT}
