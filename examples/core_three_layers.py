"""What the decision core decides for a network of three layers on a card that holds about half of
it (docs/core.md, Three layers).

Runs the core alone, without a GPU or a simulated one: events in, commands out. Usage: python
examples/core_three_layers.py [ITERATION...]
"""

from __future__ import annotations

import sys
from collections import Counter

from deepum.core import UM_BLOCK_BYTES, BlockRange, Core, EventWriter

CARD = 40  # UM blocks of 2 MiB
WEIGHTS, MOMENTS, ACTIVATIONS, GRADIENTS = 4, 8, 8, 4  # of a layer: 72 blocks in all
LAYERS = (1, 2, 3)

# Launch, tensors that it uses, PyTorch blocks that are handed out before it, and taken back after
# it.
Step = tuple[str, list[str], list[str], list[str]]
FORWARD: list[Step] = [
    (f"F{i}", [f"w{i}", *([f"a{i - 1}"] if i > 1 else []), f"a{i}"], [f"a{i}"], []) for i in LAYERS
]
LOSS: Step = ("L", ["a3"], [], [])
BACKWARD: list[Step] = [
    (f"B{i}", [f"w{i}", f"a{i}", *([f"a{i - 1}"] if i > 1 else []), f"g{i}"], [f"g{i}"], [f"a{i}"])
    for i in reversed(LAYERS)
]
OPTIMIZER: list[Step] = [(f"O{i}", [f"w{i}", f"m{i}", f"g{i}"], [], [f"g{i}"]) for i in LAYERS]
ITERATION = [*FORWARD, LOSS, *BACKWARD, *OPTIMIZER]


class Network:
    """Weights and moments are allocations of their own; activations and gradients are PyTorch's
    blocks in one segment.
    """

    def __init__(self) -> None:
        self.core, self.events = Core(), EventWriter()
        self.events.device(CARD)
        self.places: dict[str, BlockRange] = {}
        for slot, (name, size) in enumerate(
            (f"{kind}{i}", size) for i in LAYERS for kind, size in (("w", WEIGHTS), ("m", MOMENTS))
        ):
            self.events.allocate(slot, size)
            self.places[name] = BlockRange(slot, 0, size)
        segment, end = len(self.places), 0
        for name, size in (
            (f"{kind}{i}", size)
            for kind, size in (("a", ACTIVATIONS), ("g", GRADIENTS))
            for i in LAYERS
        ):
            self.places[name] = BlockRange(segment, end, size)
            end += size
        self.events.allocate(segment, end)
        self.active = 0
        self.decided()

    def decided(self) -> str:
        """What the core decides on the events since the last call: UM blocks by command and
        tensor.
        """
        self.core.process(self.events.take())
        moves: Counter[str] = Counter()
        for command in self.core.take_commands():
            if command.block_count:  # else only what to wait for
                moves[f"{command.kind} {self.name(command.slot, command.first_block)}"] += (
                    command.block_count
                )
        return ", ".join(f"{move} {blocks}" for move, blocks in moves.items())

    def name(self, slot: int, block: int) -> str:
        return next(
            name
            for name, at in self.places.items()
            if at.slot == slot and at.first <= block < at.first + at.count
        )

    def resident(self) -> int:
        """UM blocks that are believed to be on the card."""
        blocks = [
            (at.slot, block)
            for at in self.places.values()
            for block in range(at.first, at.first + at.count)
        ]
        return sum(bool(self.core.block_state(*block) & Core.RESIDENT) for block in blocks)

    def hand_out(self, names: list[str], active: bool) -> None:
        """PyTorch's allocator hands blocks out, or takes them back."""
        for name in names:
            at = self.places[name]
            self.active += (at.count if active else -at.count) * UM_BLOCK_BYTES
            self.events.block(
                active, at.slot, at.first * UM_BLOCK_BYTES, at.count * UM_BLOCK_BYTES, self.active
            )

    def iteration(self) -> list[tuple[str, str, int, str]]:
        """Of each launch, and of the wait behind them: what it uses, blocks resident after it, what
        was decided at it.
        """
        rows = []
        for number, (launch, uses, begins, ends) in enumerate(ITERATION, start=1):
            self.hand_out(begins, True)
            self.events.execute(number, [self.places[name] for name in uses])
            moves = self.decided()
            rows.append((launch, " ".join(uses), self.resident(), moves))
            self.hand_out(ends, False)
        self.events.synchronise()
        moves = self.decided()
        return [*rows, ("wait", "", self.resident(), moves)]


def table(shown: set[int]) -> list[str]:
    """The lines for these iterations, counted from 1."""
    network, lines = Network(), []
    for iteration in range(1, max(shown) + 1):
        before = network.core.statistics()
        rows = network.iteration()
        if iteration in shown:
            after = network.core.statistics()
            right = after.predictions_right - before.predictions_right
            lines.append(f"iteration {iteration}: {right} of {len(ITERATION)} launches predicted")
            lines += [
                f"  {launch:4}  {uses:11}  {resident:2}  {moves}".rstrip()
                for launch, uses, resident, moves in rows
            ]
    return lines


if __name__ == "__main__":
    print("\n".join(table({int(text) for text in sys.argv[1:]} or {1, 3, 5})))
