"""A program whose looks tell the GPU's time, which depends on what the core makes of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from duplicating import Program, Step
from reference import Reference

from deepum.core import Command, events

Took = Callable[[bool], int]  # microseconds of a launch, one way and the other
LOOK = 8  # launches


class TimedProgram(Program, ABC):
    """As Program; each launch takes the time of one way or the other, and a look behind every
    eighth one tells it.
    """

    def __init__(self, took: Took, capacity: int, sizes: Sequence[int], **settings: int) -> None:
        super().__init__(capacity, sizes, **settings)
        self.took, self.now, self.launches = took, 1000, 0
        self.commands: list[Command] = []
        self.records = b""
        take = self.writer.take

        def kept() -> bytes:
            taken = take()
            self.records += taken
            return taken

        self.writer.take = kept  # type: ignore[method-assign]

    @abstractmethod
    def other_way(self) -> bool:
        """Whether what is tried is done now."""

    def decided(self) -> list[Command]:
        made = super().decided()
        self.commands += made
        return made

    def iteration(self, steps: Sequence[Step]) -> list[Command]:
        made: list[Command] = []
        for step in steps:
            made += self.launch(step)
            self.launches += 1
            self.now += self.took(self.other_way())
            if self.launches % LOOK == 0:
                self.writer.progress(
                    0,
                    self.writer.sequence,
                    self.writer.sequence,
                    self.now if self.took(True) else 0,
                )
                made += self.decided()
        return made

    def agree(self) -> None:
        """The plain core gives the same commands."""
        reference = Reference(self.settings)
        for event in events(self.records):
            reference.process(event)
        assert reference.commands == self.commands
        assert reference.wants_faults == self.core.wants_faults
        assert reference.wants_reads == self.core.wants_reads
