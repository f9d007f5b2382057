"""What a core did in an iteration, as a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from deepum.core import (
    Command,
    Core,
    CoreSettings,
    Event,
    EventWriter,
    Execute,
    PlannedKind,
    PlannedMove,
    PlanPoint,
    events,
)

KINDS = {
    "prefetch": PlannedKind.PREFETCH,
    "populate": PlannedKind.PREFETCH,
    "evict": PlannedKind.EVICT,
    "discard": PlannedKind.EVICT,
    "drop": PlannedKind.EVICT,
}


@dataclass
class Iteration:
    """Its launches, the commands that were given, and what a plan of the same moves says."""

    launches: list[int] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    moves: list[PlannedMove] = field(default_factory=list)


def records(buffer: bytes) -> Iterator[tuple[bytes, Event]]:
    """Each event's record, and the event."""
    at = 0
    for event in events(buffer):
        length = 8 * int.from_bytes(buffer[at : at + 2], "little")
        yield buffer[at : at + length], event
        at += length


class PlannedRun:
    """A program that takes steps, and its core."""

    def __init__(
        self,
        setup: Callable[[EventWriter], None],
        step: Callable[[EventWriter], None],
        **settings: int,
    ) -> None:
        self.core, self.writer, self._step = (
            Core(CoreSettings.default(**settings)),
            EventWriter(),
            step,
        )
        setup(self.writer)
        self.core.process(self.writer.take())

    def step(self) -> Iteration:
        """The next step. What precedes the hold of a launch was moved for the launch itself."""
        self._step(self.writer)
        iteration = Iteration()
        for record, event in records(self.writer.take()):
            self.core.process(record)
            given = self.core.take_commands()
            iteration.commands += given
            if isinstance(event, Execute):
                iteration.launches.append(event.execution_hash)
            held = max((i for i, command in enumerate(given) if command.kind == "hold"), default=-1)
            for i, command in enumerate(given):
                if command.kind == "hold":
                    continue
                at_launch = PlanPoint.BEFORE_LAUNCH if i < held else PlanPoint.AFTER_LAUNCH
                point = at_launch if isinstance(event, Execute) else PlanPoint.AT_WAIT
                for block in range(command.first_block, command.first_block + command.block_count):
                    name = self.core.name_block(command.slot, block)
                    assert name is not None
                    iteration.moves.append(
                        PlannedMove(
                            len(iteration.launches) - 1, point, KINDS[command.kind], *name, 1
                        )
                    )
        return iteration
