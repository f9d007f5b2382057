"""Commands in plain Python: what waits for what, and which are lengthened."""

from __future__ import annotations

from dataclasses import replace

from reference_block import Name, UmBlock
from reference_expected import Expected
from reference_memory import Allocation, Memory

from deepum.core import Command, CoreSettings

CORRELATION = 1
FARTHEST, TURN = 1 << 16, 8  # launches up to which next uses are told apart, by so many
LEAST_RECENTLY_MIGRATED, FURTHEST_NEXT_USE = 0, 2
HISTORY = 1
MOST_COMMAND_BLOCKS = 8
REMEMBERED = 4096  # commands of which it is known what they were
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
MOVES_IN, MOVES_OUT = (*BRINGS, "collapse"), ("evict", "drop", "copy_out")


class Commands:
    """What is known of memory, and what was commanded."""

    def __init__(self, settings: CoreSettings) -> None:
        self.settings = settings
        self.allocations: dict[int, Allocation] = {}
        self.devices: dict[int, Memory] = {}
        self.bound: dict[Name, tuple[int, int]] = {}  # slot and first UM block
        self.position = 0
        self.sequence = 0
        self.commands: list[Command] = []
        self.given: dict[int, int] = {}  # the latest commands, by id modulo how many are remembered
        self.last: dict[str, int] = {}  # place in commands of the last one of a direction that may be lengthened

    def memory(self, device: int) -> Memory:
        if device not in self.devices:
            order = self.settings.eviction_order
            by_next_use = order == FURTHEST_NEXT_USE and self.settings.policy == CORRELATION
            turns, launches = (FARTHEST // TURN, TURN) if by_next_use else (self.settings.prefetch_degree, 1)
            span = 1 << (turns + 1).bit_length()  # two more, and a power of two
            self.devices[device] = Memory(
                ordinal=device,
                by_migration=order == LEAST_RECENTLY_MIGRATED,
                by_next_use=by_next_use,
                launch_queue=self.settings.launch_queue,
                only_placed=self.settings.prediction != HISTORY and order != FURTHEST_NEXT_USE,
                expected=Expected(span, launches),
                expected_copied=Expected(span, launches),
            )
        return self.devices[device]

    def memory_of(self, block: UmBlock) -> Memory:
        return self.memory(self.allocations[block.slot].device)

    def command(
        self, kind: str, block: UmBlock, after_sequence: int, streams: int, after_move: int, advice: int = 0, location: int = 0
    ) -> None:
        allocation = self.allocations[block.slot]
        made = Command(
            id=len(self.commands) + 1,
            cause=self.sequence,
            after_sequence=after_sequence,
            stream_mask=streams if after_sequence else 0,
            after_move=after_move,
            slot=block.slot,
            generation=allocation.generation,
            first_block=block.index,
            block_count=1,
            kind=kind,
            advice=advice,
            device=allocation.device,
            location=location,
        )
        if kind in BRINGS:
            awaited = self.memory_of(block).awaited
            key = (kind, self.direction(after_move))
            awaited[key] = max(awaited.get(key, 0), after_move)
        key_of_last = kind if kind == "advise" else DIRECTION[kind]
        place = self.last.get(key_of_last)
        last = self.commands[place] if place is not None else None
        if last is not None and place is not None and self.goes_on(last, made):
            made = replace(last, block_count=last.block_count + 1, after_move=max(last.after_move, after_move))
            self.commands[place] = made
        else:
            self.commands.append(made)
            self.remember(made)
            if kind == "advise":
                self.last.pop(DIRECTION[kind], None)  # prefetches come behind it, but it may go before prefetches
            self.last[key_of_last] = len(self.commands) - 1
        if kind in MOVES_IN:
            block.moved_in = made.id
            block.populates = kind == "populate" or (block.populates and kind not in BRINGS)
        elif kind in MOVES_OUT:
            block.moved_out = made.id
            block.stayed = kind == "copy_out"
        elif kind == "discard":
            block.discarded = made.id

    def goes_on(self, last: Command, made: Command) -> bool:
        """The next block, for the same reason and behind the same; and it waits for nothing later than the last."""

        def alike(command: Command) -> Command:
            return replace(command, id=0, first_block=0, block_count=0, after_move=0)

        follows = last.first_block + last.block_count == made.first_block and last.block_count < MOST_COMMAND_BLOCKS
        one_direction = not made.after_move or not last.after_move or self.direction(made.after_move) == self.direction(last.after_move)
        return follows and alike(last) == alike(made) and made.after_move < last.id and one_direction

    def remember(self, command: Command) -> None:
        self.given[command.id % REMEMBERED] = command.id

    def direction(self, move: int) -> str:
        """Of that command; none where there is none, or it was long ago."""
        return DIRECTION[self.commands[move - 1].kind] if move and self.given.get(move % REMEMBERED) == move else "none"

    def await_move(self, memory: Memory, device: int, kind: str, move: int, direction: str = "") -> None:
        """All of that kind to come do, by way of one of no blocks: each names one move, and those of one direction are in order."""
        key = (kind, direction or self.direction(move))
        if move > memory.awaited.get(key, 0):
            memory.awaited[key] = move
            self.commands.append(Command(len(self.commands) + 1, self.sequence, 0, 0, move, 0, 0, 0, 0, kind, 0, device, 0))
            self.last.pop(DIRECTION[kind], None)
