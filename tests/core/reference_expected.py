"""Resident blocks that launches to come are expected to use, in plain Python: what native/core/placement/expected_blocks.hpp does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from reference_block import UmBlock


@dataclass
class Expected:
    """By turns of so many launches, the first of a turn first."""

    span: int = 2  # turns that can be told apart,
    launches: int = 1  # of a turn
    turns: dict[int, list[UmBlock]] = field(default_factory=dict)
    passed: int = 0  # turns that nothing is expected in any longer

    def add(self, block: UmBlock) -> None:
        """For launch `block.use_position`, which is brought into the span."""
        turn = min(max(block.use_position // self.launches, self.passed + 1), self.passed + self.span - 1)
        if turn != block.use_position // self.launches:
            block.use_position = turn * self.launches
        self.turns.setdefault(turn, []).append(block)

    def remove(self, block: UmBlock) -> None:
        turn = block.use_position // self.launches
        self.turns[turn].remove(block)
        if not self.turns[turn]:
            del self.turns[turn]

    def overdue(self, position: int) -> Iterator[UmBlock]:
        """Those of the turns that end with that launch or before, each of which has to be put elsewhere; then these turns have passed."""
        last = (position + 1) // self.launches - 1
        for turn in sorted(self.turns):
            if turn > last:
                break
            # What is expected again gets its next place only once all before it has gone.
            self.passed = max(self.passed, turn - 1)
            yield from list(self.turns.get(turn, ()))
        self.passed = max(self.passed, last)

    def beyond(self, position: int) -> list[UmBlock]:
        """By launches of turns beyond that of this one, the farthest first."""
        turns = sorted((turn for turn in self.turns if turn > position // self.launches), reverse=True)
        return [block for turn in turns for block in self.turns[turn]]

    def __len__(self) -> int:
        return sum(map(len, self.turns.values()))
