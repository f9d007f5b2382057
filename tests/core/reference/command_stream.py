"""Commands in the order in which they are decided: what waits for what, and which are
lengthened.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from deepum.core import Command
from reference.clock import Clock
from reference.memory.um_block import UmBlock

MOST_COMMAND_BLOCKS = 8
REMEMBERED = 4096  # commands of which the direction is known
# Commands of a direction are carried out in order.
DIRECTION = {
    "prefetch": "in",
    "advise": "in",
    "populate": "populate",
    "evict": "out",
    "drop": "drop",
    "copy_out": "copy",
    "collapse": "collapse",
    "discard": "discard",
}
BRINGS = ("prefetch", "populate")
# Advice.
SET_READ_MOSTLY, UNSET_READ_MOSTLY, SET_PREFERRED_LOCATION, UNSET_PREFERRED_LOCATION = 1, 2, 3, 4
ACCESSED_BY = SET_ACCESSED_BY, UNSET_ACCESSED_BY = 5, 6
MOVES_IN, MOVES_OUT = (*BRINGS, "collapse"), ("evict", "drop", "copy_out")


class After(NamedTuple):
    """What a command waits for; nothing by default."""

    launch: int = 0  # launches up to that event,
    streams: int = 0  # on these streams, a bit each
    move: int = 0  # a command of another direction


NOTHING = After()


class CommandStream:
    """It does not know why a block moves."""

    def __init__(self, now: Clock) -> None:
        self.now = now
        self.commands: list[Command] = []
        # The latest commands that answers name, by id modulo how many are remembered.
        self.given: dict[int, int] = {}
        # Place in commands of the last one of a direction that may be lengthened.
        self.last: dict[str, int] = {}
        # By device, kind and direction: commands of that kind to come wait for moves of that
        # direction up to here.
        self.fences: dict[tuple[int, str, str], int] = {}

    def move(
        self, kind: str, block: UmBlock, after: After = NOTHING, advice: int = 0, location: int = 0
    ) -> None:
        """Moves one block, or advises it in order with moves."""
        streams = after.streams if after.launch else 0
        made = self.make(
            kind, block.device, after._replace(streams=streams), block, 1, advice, location
        )
        if kind in BRINGS:
            key = (block.device, kind, self.direction(after.move))
            self.fences[key] = max(self.fences.get(key, 0), after.move)
        key_of_last = kind if kind == "advise" else DIRECTION[kind]
        place = self.last.get(key_of_last)
        if place is not None and self.goes_on(self.commands[place], made):
            last = self.commands[place]
            made = replace(
                last, block_count=last.block_count + 1, after_move=max(last.after_move, after.move)
            )
            self.commands[place] = made
        else:
            self.give(made)
            if kind == "advise":
                # Prefetches come behind it, but it may go before prefetches.
                self.last.pop(DIRECTION[kind], None)
            self.last[key_of_last] = len(self.commands) - 1
        if kind in MOVES_IN:
            block.move_in = made.id
            block.in_populates = kind == "populate" or (block.in_populates and kind not in BRINGS)
        elif kind in MOVES_OUT:
            block.move_out = made.id
            block.out_keeps = kind == "copy_out"
        elif kind == "discard":
            block.discard = made.id

    def advise(self, run: list[UmBlock], advice: int) -> None:
        """Takes effect when its turn in the stream comes; the location is the device for advice of
        access, the host for that of place.
        """
        if run:
            device = run[0].device
            self.give(
                self.make(
                    "advise",
                    device,
                    NOTHING,
                    run[0],
                    len(run),
                    advice,
                    device if advice in ACCESSED_BY else -1,
                )
            )
            self.last.pop("in", None)

    def fence(self, device: int, kind: str, move: int, direction: str = "") -> None:
        """All later commands of that kind wait for the move, by way of one of no blocks: each names
        one move, and those of one direction are in order.
        """
        key = (device, kind, direction or self.direction(move))
        if move > self.fences.get(key, 0):
            self.fences[key] = move
            self.commands.append(self.make(kind, device, After(move=move)))
            self.last.pop(DIRECTION[kind], None)

    def hold_launch(self, device: int, stream: int, move: int, behind_others: bool) -> None:
        """The launch at hand starts once that move is complete, which waits for launches of other
        streams, too, or not.
        """
        self.commands.append(
            self.make("hold", device, After(0, 1 << stream, move), advice=int(behind_others))
        )

    def end_holds(self) -> None:
        """Launches from the one at hand on wait for nothing, until another is held."""
        self.commands.append(self.make("hold", 0, NOTHING))

    def direction(self, move: int) -> str:
        """Of that command; none where there is none, or it was long ago."""
        return (
            DIRECTION[self.commands[move - 1].kind]
            if move and self.given.get(move % REMEMBERED) == move
            else "none"
        )

    def find(self, command: int) -> Command | None:
        return self.commands[command - 1] if 1 <= command <= len(self.commands) else None

    def make(
        self,
        kind: str,
        device: int,
        after: After,
        first: UmBlock | None = None,
        count: int = 0,
        advice: int = 0,
        location: int = 0,
    ) -> Command:
        slot, generation, index = (
            (first.slot, first.generation, first.index) if first is not None else (0, 0, 0)
        )
        number, cause = len(self.commands) + 1, self.now.event
        return Command(
            number, cause, *after, slot, generation, index, count, kind, advice, device, location
        )

    def give(self, command: Command) -> None:
        self.commands.append(command)
        self.given[command.id % REMEMBERED] = command.id

    def goes_on(self, last: Command, made: Command) -> bool:
        """The next block, for the same reason and behind the same; and it waits for nothing later
        than the last.
        """

        def alike(command: Command) -> Command:
            return replace(command, id=0, first_block=0, block_count=0, after_move=0)

        follows = (
            last.first_block + last.block_count == made.first_block
            and last.block_count < MOST_COMMAND_BLOCKS
        )
        one_direction = (
            not made.after_move
            or not last.after_move
            or self.direction(made.after_move) == self.direction(last.after_move)
        )
        return (
            follows and alike(last) == alike(made) and made.after_move < last.id and one_direction
        )
