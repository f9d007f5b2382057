"""A mover, streams and a device for the decision core: carries commands out in the worst order that
their words allow.

Each direction carries its commands out in the order of their ids; a command starts when the
launches that it waits for have run and the command that it waits for is done. Nothing else holds it
back. So the checks are: no move starts before what makes it right, whatever the speed of host,
device and link.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from deepum.core import Command, Execute

Key = tuple[int, int]  # slot, UM block
# Of each kind of commands; what leaves the device leaves it for good in the last two.
DIRECTION = {
    "prefetch": "in",
    "advise": "in",
    "populate": "populate",
    "collapse": "collapse",
    "copy_out": "copy",
    "evict": "out",
    "drop": "drop",
}
BRINGS, LEAVES = ("prefetch", "populate"), ("evict", "drop")


@dataclass
class Machine:
    """Memory for `capacity` UM blocks. Launches run in the order of their streams; faults bring
    what is missing.
    """

    capacity: int
    random: Random
    resident: set[Key] = field(default_factory=set)
    done: set[int] = field(default_factory=lambda: {0})
    waiting: dict[str, deque[Command]] = field(
        default_factory=lambda: {direction: deque() for direction in DIRECTION.values()}
    )
    launched: deque[Execute] = field(default_factory=deque)
    # Sequence of a launch not yet run: stream.
    unfinished: dict[int, int] = field(default_factory=dict)
    faults: int = 0  # blocks that a launch missed
    driver_evictions: int = 0
    violations: list[str] = field(default_factory=list)
    # Sequence of a launch: the prefetch and the population it waits for.
    held: dict[int, list[int]] = field(default_factory=dict)
    last_use: dict[Key, int] = field(default_factory=dict)  # sequence of the latest launch so far

    def launch(self, event: Execute, commands: list[Command]) -> None:
        """The program launches; the commands were decided by then (as in lock-step)."""
        for r in event.ranges:
            for block in range(r.first, r.first + r.count):
                self.last_use[r.slot, block] = event.sequence
        for command in commands:
            if command.kind == "hold":
                self.hold(event, command)
                continue
            self.give(command)
        self.launched.append(event)
        self.unfinished[event.sequence] = event.stream

    def give(self, command: Command) -> None:
        """To be carried out."""
        self.check(command)
        self.waiting[DIRECTION[command.kind]].append(command)

    def check(self, command: Command) -> None:
        """An eviction waits for every launch so far that used its blocks; no move waits for a later
        one.
        """
        if command.after_move >= command.id:
            self.violations.append(f"{command} waits for a later one")
        if command.kind not in LEAVES:
            return
        for block in range(command.first_block, command.first_block + command.block_count):
            last = self.last_use.get((command.slot, block), 0)
            if last > command.after_sequence:
                self.violations.append(f"{command} does not wait for launch {last}")

    def hold(self, event: Execute, command: Command) -> None:
        """The launch that waits is the one at hand; for what is brought, which waits for earlier
        launches, of the same stream only unless the hold says so.
        """
        if command.cause != event.sequence or command.stream_mask != 1 << event.stream:
            self.violations.append(f"{command} names another launch")
        given = {move.id: move for queue in self.waiting.values() for move in queue}
        ahead = [command.after_move]
        while ahead:
            move = given.pop(ahead.pop(), None)
            if move is None:
                continue
            others = move.stream_mask & ~command.stream_mask and not command.advice
            if move.kind in LEAVES and (move.after_sequence >= event.sequence or others):
                self.violations.append(f"{command} waits for {move}")
            # Each direction goes in order.
            ahead += [
                move.after_move,
                *(
                    other.id
                    for other in given.values()
                    if DIRECTION[other.kind] == DIRECTION[move.kind] and other.id < move.id
                ),
            ]
        self.held.setdefault(event.sequence, []).append(command.after_move)

    def ready(self, command: Command) -> bool:
        """Nothing that it names holds it back."""
        if command.after_move not in self.done:
            return False
        return not any(
            s <= command.after_sequence and command.stream_mask >> stream & 1
            for s, stream in self.unfinished.items()
        )

    def move(self, command: Command) -> None:
        """Carries it out."""
        self.done.add(command.id)
        for block in range(command.first_block, command.first_block + command.block_count):
            key = command.slot, block
            if command.kind in LEAVES:
                self.resident.discard(key)
            elif command.kind in BRINGS and key not in self.resident:
                if len(self.resident) >= self.capacity:
                    self.violations.append(f"{command} starts before its space is free")
                self.resident.add(key)

    def run_launch(self) -> None:
        """The oldest launch; the driver brings what is missing and makes room for it."""
        event = self.launched.popleft()
        del self.unfinished[event.sequence]
        mine = [
            (r.slot, block) for r in event.ranges for block in range(r.first, r.first + r.count)
        ]
        for key in mine:
            if key not in self.resident:
                self.faults += 1
                if len(self.resident) >= self.capacity:
                    self.driver_evictions += 1
                    self.resident.discard(min(self.resident - set(mine) or self.resident))
                self.resident.add(key)

    def steps(self) -> list[Callable[[], None]]:
        """All that may happen next."""
        possible: list[Callable[[], None]] = []
        for queue in self.waiting.values():
            if queue and self.ready(queue[0]):
                possible.append(lambda queue=queue: self.move(queue.popleft()))  # type: ignore[misc]
        return possible

    def advance(self, most: int) -> None:
        """Up to that many random steps of moves; then launches run as far as the moves they need
        are done, or none is possible.
        """
        for _ in range(most):
            possible = self.steps()
            if not possible:
                return
            self.random.choice(possible)()

    def settle(self, patient: bool) -> None:
        """Runs everything that was launched. A patient device lets moves go first."""
        while self.launched:
            self.advance(1 << 30 if patient else self.random.randrange(4))
            self.run_launch()
        self.advance(1 << 30)
