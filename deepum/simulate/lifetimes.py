"""What one steady iteration of a recorded program allocates, for a static arena (deepum.arena)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deepum.arena.buffers import Buffer
from deepum.core import Block, Event, Execute, events
from deepum.errors import UsageError
from deepum.simulate.policies import BY_NAME
from deepum.simulate.policy_run import run
from deepum.simulate.steps import step_ends
from deepum.simulate.workload import Workload

ALIGNMENT = 512  # of PyTorch's blocks

_Place = tuple[int, int]


@dataclass(frozen=True)
class Lifetimes:
    """Buffers of one iteration, in time counted in PyTorch's handing out and taking back; what
    lives throughout is one buffer. reserved_bytes: what the caching allocator has of the driver at
    most meanwhile.
    """

    buffers: tuple[Buffer, ...]
    reserved_bytes: int


@dataclass
class _Handouts:
    """Block events with the executions before each, and the bytes handed out behind it."""

    executions: list[int]
    blocks: list[Block]


def _blocks(all_events: Iterable[Event]) -> _Handouts:
    handouts = _Handouts([], [])
    executions = 0
    for event in all_events:
        if isinstance(event, Execute):
            executions += 1
        elif isinstance(event, Block):
            handouts.executions.append(executions)
            handouts.blocks.append(event)
    return handouts


def _is_active(block: Block) -> bool:
    return block.kind == "block_active"


def lifetimes_of(blocks: Sequence[Block], first: int, last: int) -> Lifetimes:
    """Of the blocks handed out and taken back in [first, last) of all that was told: one period of
    a program that repeats. A block that lives at its end stands for one of the same size at its
    beginning, and both live throughout, as what lives across all of it does.
    """
    alive: dict[_Place, Block] = {}
    for block in blocks[:first]:
        if _is_active(block):
            alive[block.slot, block.offset] = block
        else:
            alive.pop((block.slot, block.offset), None)
    before = dict(alive)
    begins: dict[_Place, int] = {}
    found: list[Buffer] = []
    gone: dict[int, int] = defaultdict(int)  # of those before, by bytes
    for time, block in enumerate(blocks[first:last]):
        place = block.slot, block.offset
        if _is_active(block):
            begins[place] = time
            alive[place] = block
        elif (taken := alive.pop(place, None)) is not None:
            if place in begins:
                name = str(len(found) + 1)
                found.append(Buffer(name, begins.pop(place), time, taken.bytes, ALIGNMENT))
            else:
                gone[taken.bytes] += 1
                del before[place]
    throughout = sum(block.bytes for block in before.values())
    for place in begins:  # what lives at the end
        size = alive[place].bytes
        gone[size] = max(0, gone[size] - 1)
        throughout += size
    throughout += sum(size * count for size, count in gone.items())
    throughout = -(-throughout // ALIGNMENT) * ALIGNMENT
    whole = [Buffer("throughout", 0, max(last - first, 1), throughout, ALIGNMENT)]
    reserved = max((block.reserved_bytes for block in blocks[first:last]), default=0)
    return Lifetimes((*(whole if throughout else []), *found), reserved)


def lifetimes(workload: Workload, machine: str) -> Lifetimes:
    """Of the last iteration but one, cut where the fewest bytes are handed out. Raises UsageError
    where the program does not repeat itself, or its trace tells no blocks of PyTorch.
    """
    handouts = _blocks(events(workload.trace.events))
    ends = step_ends(run(workload, machine, BY_NAME["unlimited"]), workload.trace)
    if not handouts.blocks:
        raise UsageError(
            f"workload {workload.name}: tells nothing of PyTorch's blocks; name one that does"
        )
    if len(ends) < 4:
        raise UsageError(f"workload {workload.name}: takes {len(ends)} steps; record at least four")
    before, begin, end = (mark.launches for mark in ends[-4:-1])
    within = [i for i, at in enumerate(handouts.executions) if begin <= at < end]
    if not within:
        raise UsageError(
            f"workload {workload.name}: hands no block out in an iteration; nothing is to be placed"
        )
    cut = min(within, key=lambda i: handouts.blocks[i].allocated_bytes)
    period = sum(before <= at < begin for at in handouts.executions)
    first = cut + 1 - len(within) if period == len(within) else within[0]
    last = cut + 1 if period == len(within) else within[-1] + 1
    return lifetimes_of(handouts.blocks, first, last)
