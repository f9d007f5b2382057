"""A training step that repeats costs the same each time, however far ahead launches are
predicted.
"""

from __future__ import annotations

from statistics import median

import pytest
from duplicating import blocks

from deepum.core import UM_BLOCK_BYTES, BlockRange, Command, Core, CoreSettings, EventWriter

CAPACITY = 512
# Launches forward, and as many back; UM blocks of a layer's weights and of what it leaves.
LAYERS, WEIGHTS, ACTIVATION = 24, 8, 20
# Predictions in a row that are right, by which a profile is known to be the program's.
RECOGNISED = 32
TURNS = 5  # steps after which launches come again as they were: so the chain holds as many


class Training:
    """Weights of 192 blocks and activations of 480 on a card of 512. A part of the launches is
    another in each of five steps, as where PyTorch's blocks change places; and in each step a few
    blocks more or fewer come into being.
    """

    def __init__(self) -> None:
        self.core, self.writer = Core(CoreSettings.default(headroom_blocks=4)), EventWriter()
        self.writer.device(CAPACITY)
        self.writer.allocate(0, LAYERS * WEIGHTS)
        self.writer.allocate(1, LAYERS * ACTIVATION, name=1)
        self.writer.allocate(2, 64, name=2)
        self.alive = 0

    def tensor(self, active: bool, slot: int, first: int, count: int) -> None:
        self.alive += count if active else -count
        self.writer.block(
            active,
            slot,
            first * UM_BLOCK_BYTES,
            count * UM_BLOCK_BYTES,
            self.alive * UM_BLOCK_BYTES,
        )

    def step(self, number: int) -> list[Command]:
        turn = number % TURNS
        more = (0, 3, 1, 4, 2)[turn]
        for layer in range(LAYERS):
            self.tensor(True, 1, layer * ACTIVATION, ACTIVATION)
            kernel = 100 + layer + (1000 * turn if layer % 3 == 0 else 0)
            self.writer.execute(
                kernel,
                [
                    BlockRange(0, layer * WEIGHTS, WEIGHTS),
                    BlockRange(1, layer * ACTIVATION, ACTIVATION),
                ],
            )
        if more:
            self.tensor(True, 2, 0, more)
            self.writer.execute(90 + more, [BlockRange(2, 0, more)])
            self.tensor(False, 2, 0, more)
        for layer in reversed(range(LAYERS)):
            kernel = 200 + layer + (1000 * turn if layer % 3 == 0 else 0)
            self.writer.execute(
                kernel,
                [
                    BlockRange(0, layer * WEIGHTS, WEIGHTS),
                    BlockRange(1, layer * ACTIVATION, ACTIVATION),
                ],
            )
            self.tensor(False, 1, layer * ACTIVATION, ACTIVATION)
        for layer in range(LAYERS):
            self.writer.execute(300 + layer, [BlockRange(0, layer * WEIGHTS, WEIGHTS)])
        self.writer.synchronise()
        self.core.process(self.writer.take())
        return self.core.take_commands()


def test_no_step_moves_more_than_another() -> None:
    """Though the chain holds five steps, each with a little more or less than the others: room is
    made for the next one.
    """
    training = Training()
    moved = [len(blocks(training.step(number), "evict")) for number in range(32)][12:]
    assert training.core.statistics().chain_restarts <= 1
    assert max(moved) <= 1.1 * median(moved)
    assert min(moved) >= 0.9 * median(moved)


class Growing:
    """Allocates as it goes, two blocks a launch, up to a quarter more than the card has; then all
    of it is used over and over.
    """

    CAPACITY, LAUNCHES = 160, 100

    def __init__(self, profile: bytes | None = None, kernels: int = 0) -> None:
        self.core, self.kernels = Core(CoreSettings.default()), kernels
        if profile is not None:
            self.core.load_tables(profile)

    def run(self, rounds: int) -> list[Command]:
        """The commands of the first launches, until the card is full."""
        writer = EventWriter()
        writer.device(self.CAPACITY)
        for i in range(self.LAUNCHES):
            if i == self.CAPACITY // 2:
                self.core.process(writer.take())
                first = self.core.take_commands()
            writer.allocate(i, 2, name=1000 + i)
            writer.execute(self.kernels + i, [BlockRange(i, 0, 2)])
        for _ in range(rounds):
            for i in range(self.LAUNCHES):
                writer.execute(self.kernels + i, [BlockRange(i, 0, 2)])
        self.core.process(writer.take())
        return first


@pytest.fixture(scope="module")
def learned() -> bytes:
    cold = Growing()
    assert cold.run(4) == []  # it fits so far: what is new is populated by faults
    return cold.core.save_tables()


def test_a_program_known_by_its_profile_is_populated_before_it_fills_the_card(
    learned: bytes,
) -> None:
    populated = blocks(Growing(learned).run(0), "populate")
    assert set(populated) == {(slot, block) for slot in range(RECOGNISED, 80) for block in (0, 1)}


def test_so_is_a_third_run_by_the_profile_of_the_second_even_if_that_ended_early(
    learned: bytes,
) -> None:
    second = Growing(learned)
    second.run(0)
    assert len(blocks(Growing(second.core.save_tables()).run(0), "populate")) >= 2 * (
        80 - RECOGNISED
    )


def test_the_profile_of_another_program_changes_nothing(learned: bytes) -> None:
    other, alone = Growing(learned, kernels=500), Growing(kernels=500)
    assert other.run(3) == alone.run(3) == []
    assert other.core.take_commands() == alone.core.take_commands()


def test_a_profile_tells_what_is_needed_last() -> None:
    """What is used next, and when, is in it: else victims of the first steps are chosen by last
    use, and more comes back.
    """
    settled = Training()
    for number in range(25):
        settled.step(number)
    warm = Training()
    warm.core.load_tables(settled.core.save_tables())
    first, second = (len(blocks(warm.step(number), "evict")) for number in (25, 26))
    assert second <= 1.05 * first
