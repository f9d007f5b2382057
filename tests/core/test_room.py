"""Room for what is still to come into being, made while the program waits; and sweeps over more
than there is.
"""

from __future__ import annotations

import pytest
from mover import BRINGS
from programs import sweep, write

from deepum.core import UM_BLOCK_BYTES, BlockRange, Command, Core, CoreSettings, EventWriter

OLDEST_LAST_USE, FURTHEST_NEXT_USE = 1, 2
LAYERS, WEIGHTS, ACTIVATIONS, STATE = 16, 1, 3, 4  # UM blocks a layer
BATCH = 8  # blocks
RESTED = 32  # blocks that have come since the last use of what goes although it is expected
Key = tuple[int, int]  # slot, UM block


def blocks(command: Command) -> list[Key]:
    return [
        (command.slot, block)
        for block in range(command.first_block, command.first_block + command.block_count)
    ]


class Training:
    """A training loop: forward makes activations, in PyTorch's blocks, backward gives them back,
    and the optimizer goes over its state. Weights are slot 0, activations 1, state 2. The program
    waits after each step; the chain is as long as the step. Behind the optimizer's `sweeps` come
    `idle` launches that use nothing.
    """

    def __init__(
        self, capacity: int, order: int, sweeps: int = 1, idle: int = 0, **settings: int
    ) -> None:
        self.sweeps, self.idle = sweeps, idle
        settings = {
            "eviction_order": order,
            "prefetch_degree": (2 + sweeps) * LAYERS + idle,
            **settings,
        }
        self.core, self.writer = Core(CoreSettings.default(**settings)), EventWriter()
        self.writer.device(capacity)
        for slot, each in enumerate((WEIGHTS, ACTIVATIONS, STATE)):
            self.writer.allocate(slot, LAYERS * each)
        self.core.process(self.writer.take())

    def launch(self, execution: int, layer: int, slot: int, each: int) -> int:
        return self.writer.execute(
            execution + layer,
            [BlockRange(0, layer * WEIGHTS, WEIGHTS), BlockRange(slot, layer * each, each)],
        )

    def step(self) -> tuple[int, list[Command]]:
        """The sequence of the launch at which memory is fullest, the end of forward, and what was
        decided before the wait.
        """
        size = ACTIVATIONS * UM_BLOCK_BYTES
        fullest = 0
        for layer in range(LAYERS):
            self.writer.block(True, 1, layer * size, size, 0)
            fullest = self.launch(1000, layer, 1, ACTIVATIONS)
        for layer in reversed(range(LAYERS)):
            self.launch(2000, layer, 1, ACTIVATIONS)
            self.writer.block(False, 1, layer * size, size, 0)
        for number in range(self.sweeps):
            for layer in range(LAYERS):
                self.launch(3000 + 100 * number, layer, 2, STATE)
        for number in range(self.idle):
            self.writer.execute(10_000 + number, ())
        self.core.process(self.writer.take())
        return fullest, self.core.take_commands()

    def wait(self) -> list[Command]:
        self.writer.synchronise()
        self.core.process(self.writer.take())
        return self.core.take_commands()


@pytest.mark.parametrize("order", [OLDEST_LAST_USE, FURTHEST_NEXT_USE])
def test_a_wait_makes_room_for_the_activations_to_come(order: int) -> None:
    """What goes is the optimizer's state, which was used last but is needed only after the
    activations; of the weights, none. By next use what left before goes before the wait, while the
    optimizer runs, and what is still in the way during it.
    """
    training = Training(capacity=100, order=order)
    for _ in range(4):
        training.step()
        training.wait()
    for _ in range(3):
        fullest, decided = training.step()
        assert not [c for c in decided if c.kind == "evict" and c.cause < fullest], (
            "in time for the activations"
        )
        before = [key for c in decided if c.kind == "evict" for key in blocks(c) if key[0] != 1]
        gone = [key for c in training.wait() if c.kind == "evict" for key in blocks(c)]
        assert bool(before) == (order == FURTHEST_NEXT_USE)
        assert gone
        assert len(before + gone) >= LAYERS * (WEIGHTS + ACTIVATIONS + STATE) - 100
        assert {slot for slot, _ in before + gone} == {2}


def test_what_left_before_leaves_ahead_once_nothing_has_left_for_want_of_space_for_a_while() -> (
    None
):
    """The optimizer goes over its state, for which there is no room, again and again, and all the
    while nothing leaves but for what it misses. A 64th of the iteration's 640 launches later more
    of the state leaves, a batch a launch, first what was used longest ago. The program never waits.
    """
    training = Training(capacity=79, order=FURTHEST_NEXT_USE, sweeps=6, idle=512, chain_steps=64)
    for _ in range(3):
        training.step()
    for _ in range(3):
        fullest, decided = training.step()
        last = training.writer.sequence - training.idle  # launch that uses anything
        left: dict[int, list[Key]] = {
            c.cause: [] for c in decided if c.kind == "evict" and c.cause > fullest
        }
        for command in decided:
            if command.cause in left and command.kind == "evict":
                left[command.cause] += blocks(command)
        ahead = {cause: keys for cause, keys in left.items() if cause > last}
        assert min(ahead) == max(left.keys() - ahead.keys()) + 640 // 64
        assert all(
            len(keys) <= BATCH and {slot for slot, _ in keys} == {2} for keys in ahead.values()
        )
        in_order = [block for cause in sorted(ahead) for _, block in ahead[cause]]
        assert in_order == sorted(in_order), (
            "of what is needed last, the optimizer used these first"
        )


@pytest.mark.parametrize("order", [OLDEST_LAST_USE, FURTHEST_NEXT_USE])
def test_nothing_behind_the_fullest_launch_is_fetched_before_it(order: int) -> None:
    training = Training(capacity=100, order=order)
    waits: list[Command] = []
    for number in range(7):
        fullest, decided = training.step()
        if number >= 4:
            fetched = [
                key
                for c in waits + decided
                if c.kind in BRINGS and c.cause < fullest
                for key in blocks(c)
            ]
            assert fetched
            assert not [key for key in fetched if key[0] == 2]
        waits = training.wait()


@pytest.mark.parametrize("order", [OLDEST_LAST_USE, FURTHEST_NEXT_USE])
@pytest.mark.parametrize("launches", [192, 768])
def test_a_sweep_moves_about_what_exceeds_memory(order: int, launches: int) -> None:
    """Over half as much again as there is, round after round, with a wait after each: not all of
    it, as without foresight.
    """
    capacity, footprint = 512, 768
    core, writer = Core(CoreSettings.default(eviction_order=order)), EventWriter()
    writer.device(capacity)
    writer.allocate(0, footprint)
    core.process(writer.take())
    evicted, fetched = [], []
    for _ in range(10):
        before = core.statistics()
        records = write(writer, sweep(footprint, launches))
        writer.synchronise()
        core.process(records + writer.take())
        after = core.statistics()
        evicted.append((after.bytes_evicted - before.bytes_evicted) // UM_BLOCK_BYTES)
        fetched.append((after.bytes_prefetched - before.bytes_prefetched) // UM_BLOCK_BYTES)
    assert min(evicted) >= footprint - capacity
    assert max(evicted[3:]) <= 1.25 * (footprint - capacity)
    assert max(fetched[3:]) <= 1.25 * (footprint - capacity)


def overtaken(order: int) -> tuple[int, int]:
    """Of a sweep that is not waited for: the victims, and how many of them are needed before
    something else that might have gone. The chain is as long as a round.
    """
    capacity, footprint = 256, 384
    core, writer = (
        Core(CoreSettings.default(eviction_order=order, prefetch_degree=footprint)),
        EventWriter(),
    )
    writer.device(capacity)
    writer.allocate(0, footprint)
    core.process(writer.take())
    resident: set[int] = set()
    came = victims = late = 0
    came_before: dict[int, int] = {}  # blocks that had come before the last use
    for number, launch in enumerate(sweep(footprint, footprint) * 5):
        core.process(write(writer, [launch]))
        commands = core.take_commands()
        gone = {block for c in commands if c.kind == "evict" for _, block in blocks(c)}
        new = {block for c in commands if c.kind in BRINGS for _, block in blocks(c)} - (
            resident - gone
        )
        until = {block: (block - number - 1) % footprint for block in resident}
        others = [until[block] for block in resident - gone if came - came_before[block] >= RESTED]
        if number >= 4 * footprint:
            victims += len(gone)
            late += sum(until[block] < max(others, default=0) for block in gone)
        resident = (resident - gone) | new | {number % footprint}
        came += len(new)
        came_before |= dict.fromkeys(new | {number % footprint}, came)
    return victims, late


def test_furthest_next_use_evicts_what_is_used_last_of_all() -> None:
    victims, late = overtaken(FURTHEST_NEXT_USE)
    assert victims >= 128
    assert late == 0
    victims, late = overtaken(OLDEST_LAST_USE)
    assert late == victims > 0, "the sweep does not tell the orders apart"
