"""While the host runs ahead of the GPU, what is free or dead is fetched into for launches to come,
and nothing leaves for that.
"""

from __future__ import annotations

from collections.abc import Iterable

from duplicating import Program, blocks, uses
from reference.settings import FURTHEST_NEXT_USE, HISTORY

from deepum.core import BlockRange, Command

CAPACITY = 160
QUEUE = 64  # less than an iteration
ITERATIONS = 8  # until one is detected
WEIGHTS = [uses(1 + i, BlockRange(0, 10 * i, 10)) for i in range(12)]
IDLE = [uses(100 + i, BlockRange(2, 0, 4)) for i in range(260)]  # an iteration is detected
TEMPORARY, LATER = 1, 3  # slots that are allocated anew in each iteration
MOST_AHEAD = CAPACITY // 8  # while no iteration is detected
SPARED = CAPACITY // 16


class Iterations(Program):
    """Weights are swept; then something of 80 blocks comes into being, which some of them leave
    for, and ends; much later they are used.
    """

    def __init__(self, **settings: int) -> None:
        super().__init__(
            CAPACITY,
            (120,),
            **{
                "eviction_order": FURTHEST_NEXT_USE,
                "advice": 0,
                "launch_queue": QUEUE,
                "headroom_blocks": 4,
                **settings,
            },
        )
        self.writer.allocate(2, 4)
        self.writer.allocate(5, 100)  # not used, but more than there is
        self.generation = {TEMPORARY: 0, LATER: 0}

    def temporary(self, slot: int, execution: int, size: int = 80) -> list[Command]:
        self.generation[slot] += 1
        self.writer.allocate(slot, size, generation=self.generation[slot])
        return self.launch(uses(execution, BlockRange(slot, 0, size)))

    def end(self, slot: int) -> None:
        self.writer.free(slot, self.generation[slot])

    def before(self) -> list[Command]:
        """The iteration's first half."""
        commands = self.run(WEIGHTS, look=False)
        commands += self.run(IDLE[:40], look=False)
        commands += self.temporary(TEMPORARY, 50)
        self.end(TEMPORARY)
        return commands

    def iteration(self) -> list[Command]:
        return [*self.before(), *self.run(IDLE[40:], look=False)]


def of_weights(commands: Iterable[Command], kind: str = "prefetch") -> list[int]:
    return [block for slot, block in blocks(commands, kind) if slot == 0]


def test_what_left_comes_back_as_soon_as_there_is_space_for_it() -> None:
    made = Iterations()
    for _ in range(ITERATIONS):
        made.iteration()
    left = set(of_weights(made.before(), "evict"))
    came = made.run(IDLE[40:], look=False)
    assert len(left) > MOST_AHEAD + 10
    assert left.issubset(of_weights(came))
    assert not blocks(came, "evict")
    first = made.launch(WEIGHTS[0])
    assert not set(of_weights(first)).intersection(range(10)), "it is there"


def test_while_no_iteration_is_detected_no_more_than_an_eighth_comes() -> None:
    """Of less than 256 launches, without a wait, none is."""
    made = Iterations()
    for _ in range(ITERATIONS):
        left = set(of_weights(made.before(), "evict"))
        came = left.intersection(of_weights(made.run(IDLE[40:80], look=False)))
    assert len(left) > MOST_AHEAD + 10
    # Of a launch more than that, at most.
    assert MOST_AHEAD < len(came) <= MOST_AHEAD + 10


def test_beyond_an_eighth_of_the_device_twice_as_much_is_spared() -> None:
    """Another 20 blocks live on, so that more has left than may come into what is dead."""
    made = Iterations()
    for _ in range(ITERATIONS):
        made.run(WEIGHTS, look=False)
        made.run(IDLE[:40], look=False)
        commands = made.temporary(LATER, 60, 20)
        left = set(of_weights([*commands, *made.temporary(TEMPORARY, 50)], "evict"))
        made.end(TEMPORARY)
        came = left.intersection(of_weights(made.run(IDLE[40:], look=False)))
        made.end(LATER)
    assert MOST_AHEAD + 10 < len(came) < len(left)
    # Of a launch more than that, at most.
    assert 2 * SPARED <= 80 - len(came) <= 2 * SPARED + 10


def test_a_queue_that_holds_an_iteration_brings_most_of_it_early_enough() -> None:
    made = Iterations(launch_queue=1024)
    for _ in range(4):
        made.iteration()
    left = set(of_weights(made.before(), "evict"))
    came = made.run(IDLE[40:], look=False)
    # Of a launch more than that, at most.
    assert CAPACITY // 32 < len(left.intersection(of_weights(came))) <= CAPACITY // 32 + 10


def test_what_comes_into_being_until_then_has_its_room() -> None:
    """As above, but 100 blocks are wanted for something else before the weights are used: nothing
    that came has to leave for that.
    """
    made = Iterations()
    for _ in range(6):
        made.before()
        came = of_weights(made.run(IDLE[40:], look=False))
        left = of_weights(made.temporary(LATER, 60, 100), "evict")
        made.end(LATER)
    assert not set(left).intersection(came)
    assert len(came) < MOST_AHEAD


def test_a_launch_that_nobody_foresaw_takes_the_space_back() -> None:
    made = Iterations()
    for _ in range(4):
        made.iteration()
    made.before()
    ahead = of_weights(made.run(IDLE[40:], look=False))
    made.writer.allocate(4, 80)
    left = of_weights(made.launch(uses(70, BlockRange(4, 0, 80))), "evict")
    assert left
    again = [block for step in WEIGHTS for block in of_weights(made.launch(step))]
    assert set(left) & set(again), "those that had been placed are placed anew"
    assert ahead


def test_the_published_prediction_fetches_for_launches_at_hand_only() -> None:
    made = Iterations(prediction=1 - HISTORY)
    for _ in range(4):
        made.iteration()
    made.before()
    assert not of_weights(made.run(IDLE[40:], look=False))
