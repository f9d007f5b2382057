"""A plan of an iteration is followed as long as the program does what it is of; then the chain goes
on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from planning import Iteration, PlannedRun
from programs import Launch, sweep, there_and_back

from deepum.core import UM_BLOCK_BYTES, BlockRange, EventWriter, PlannedKind, PlannedMove, PlanPoint

CAPACITY = 64
# UM blocks of a layer's weights, and of what it leaves for the way back.
LAYERS, WEIGHTS, ACTIVATION = 24, 8, 20
SETTLED = 9  # steps after which all is learned

Step = Callable[[EventWriter], None]


def looping(launches: list[Launch], wait: bool) -> tuple[Step, Step]:
    """A program that launches the same over and over, on a card that holds two thirds of it."""

    def setup(writer: EventWriter) -> None:
        writer.device(CAPACITY)
        writer.allocate(0, 96)

    def step(writer: EventWriter) -> None:
        for launch in launches:
            writer.execute(launch.execution, launch.ranges, launch.stream)
        if wait:
            writer.synchronise()

    return setup, step


def training(shuffled: bool = False) -> tuple[Step, Step]:
    """Weights of 192 blocks and activations of 480 on a card of 512; PyTorch reports the
    activations. Shuffled: they lie elsewhere in each step, under the same names.
    """
    alive = step_number = 0

    def setup(writer: EventWriter) -> None:
        writer.device(512)
        writer.allocate(0, LAYERS * WEIGHTS, name=100)
        writer.allocate(1, LAYERS * ACTIVATION, name=101)

    def place(layer: int) -> int:
        return (layer + (step_number if shuffled else 0)) % LAYERS * ACTIVATION

    def tensor(writer: EventWriter, active: bool, layer: int) -> None:
        nonlocal alive
        alive += ACTIVATION if active else -ACTIVATION
        writer.block(
            active,
            1,
            place(layer) * UM_BLOCK_BYTES,
            ACTIVATION * UM_BLOCK_BYTES,
            alive * UM_BLOCK_BYTES,
        )

    def step(writer: EventWriter) -> None:
        nonlocal step_number
        for layer in range(LAYERS):
            tensor(writer, True, layer)
            writer.execute(
                100 + layer,
                [BlockRange(0, layer * WEIGHTS, WEIGHTS), BlockRange(1, place(layer), ACTIVATION)],
            )
        for layer in reversed(range(LAYERS)):
            writer.execute(
                200 + layer,
                [BlockRange(0, layer * WEIGHTS, WEIGHTS), BlockRange(1, place(layer), ACTIVATION)],
            )
            tensor(writer, False, layer)
        for layer in range(LAYERS):
            writer.execute(300 + layer, [BlockRange(0, layer * WEIGHTS, WEIGHTS)])
        writer.synchronise()
        step_number += 1

    return setup, step


PROGRAMS: dict[str, Callable[[], tuple[Step, Step]]] = {
    "sweep": lambda: looping(sweep(96, 24), False),
    "sweep that waits": lambda: looping(sweep(96, 24), True),
    "there and back": lambda: looping(there_and_back(96, 24), False),
    "there and back, waits": lambda: looping(there_and_back(96, 24), True),
    "training": training,
    "training, shuffled": lambda: training(shuffled=True),
}


def settled(program: str, **settings: int) -> PlannedRun:
    run = PlannedRun(*PROGRAMS[program](), **dict[str, Any](settings))
    for _ in range(SETTLED):
        run.step()
    return run


@pytest.mark.parametrize("order", (0, 1, 2))
@pytest.mark.parametrize("launch_queue", (0, 4, 1024))
@pytest.mark.parametrize("program", [name for name in PROGRAMS if "shuffled" not in name])
def test_a_plan_of_what_the_chain_did_gives_the_same_commands(
    program: str, launch_queue: int, order: int
) -> None:
    """Where names lie elsewhere in each step too, but for a block now and then of which residency
    comes to be doubted by just what its own launch fetches: the plan fetches that before the launch
    is placed.
    """
    settings = {"launch_queue": launch_queue, "eviction_order": order}
    chain, follower = settled(program, **settings), settled(program, **settings)
    did = chain.step()
    assert any(command.kind == "prefetch" for command in did.commands)
    follower.core.follow_plan(did.launches, did.moves)
    assert follower.step().commands == did.commands
    assert follower.core.statistics().planned_launches == len(did.launches)


def test_a_plan_holds_where_memory_has_the_same_name_in_another_place() -> None:
    did = settled("training").step()
    shuffled = settled("training, shuffled")
    shuffled.core.follow_plan(did.launches, did.moves)
    before = shuffled.core.statistics().planned_launches
    moved = shuffled.step()
    assert shuffled.core.statistics().planned_launches == before + len(did.launches)
    held = [command for command in moved.commands if command.kind == "hold"]
    assert len(held) <= len([command for command in did.commands if command.kind == "hold"]) + 2
    assert {command.first_block for command in moved.commands} != {
        command.first_block for command in did.commands
    }


def moves_of(iteration: Iteration, kind: str) -> int:
    return sum(command.block_count for command in iteration.commands if command.kind == kind)


def test_a_step_that_deviates_goes_on_by_the_chain_and_the_plan_goes_on_after_it() -> None:
    """A launch is left out of each second step: the plan is followed again from the launch behind
    it that tells the place.
    """
    launches, number = there_and_back(96, 24), 0

    def step(writer: EventWriter) -> None:
        nonlocal number
        number += 1
        for i, launch in enumerate(launches):
            if number % 2 or i != 10:
                writer.execute(launch.execution, launch.ranges, launch.stream)

    setup, _ = looping(launches, False)
    run = PlannedRun(setup, step)
    for _ in range(2 * SETTLED):
        run.step()
    did = run.step()
    assert len(did.launches) == len(launches)
    run.core.follow_plan(did.launches, did.moves)
    for left_out in (1, 0, 1):
        before = run.core.statistics().planned_launches
        assert len(run.step().launches) == len(launches) - left_out
        assert run.core.statistics().planned_launches - before == len(launches) - left_out


def test_launches_that_are_alike_are_told_apart_by_what_came_before_them() -> None:
    """Layers launch the same two kernels. Of 7, 8, 7 there are two places, of 7, 8, 7, 8 one."""
    moves = [PlannedMove(5, PlanPoint.AFTER_LAUNCH, PlannedKind.EVICT, 1, 0, 1)]
    launches = [7, 8, 7, 8, 7, 9]

    def setup(writer: EventWriter) -> None:
        writer.device(16)
        writer.allocate(0, 24)

    def step(writer: EventWriter) -> None:
        for i, launch in enumerate(launches):
            writer.execute(launch, [BlockRange(0, 4 * i, 4)])

    run = PlannedRun(setup, step)
    run.core.follow_plan(launches, moves)
    run.step()
    assert run.core.statistics().planned_launches == 3
    run.step()
    assert run.core.statistics().planned_launches == 3 + len(launches)


def test_a_plan_that_asks_for_too_much_is_carried_out_as_far_as_there_is_room() -> None:
    """It fetches everything at every launch and lets nothing leave. Launches still find what they
    need.
    """
    run = settled("there and back")
    greedy = [
        PlannedMove(launch, PlanPoint.AFTER_LAUNCH, PlannedKind.PREFETCH, 1, 0, 96)
        for launch in range(48)
    ]  # the allocation's name is 1
    run.core.follow_plan([launch.execution for launch in there_and_back(96, 24)], greedy)
    for _ in range(3):
        run.step()
        assert run.core.statistics().resident_bytes <= CAPACITY * UM_BLOCK_BYTES
    last = there_and_back(96, 24)[-1].ranges[0]
    assert all(
        run.core.block_state(0, block) & run.core.RESIDENT
        for block in range(last.first, last.first + last.count)
    )


def test_a_plan_that_evicts_what_is_needed_costs_moves_only() -> None:
    run = settled("there and back")
    usual = moves_of(run.step(), "evict")
    launches = there_and_back(96, 24)
    own = [launch.ranges[0] for launch in launches]
    wrong = [
        PlannedMove(i, PlanPoint.BEFORE_LAUNCH, PlannedKind.EVICT, 1, r.first, r.count)
        for i, r in enumerate(own)
    ]
    run.core.follow_plan([launch.execution for launch in launches], wrong)
    done = run.step()
    assert moves_of(done, "evict") > usual
    last = launches[-1].ranges[0]
    assert all(
        run.core.block_state(0, block) & run.core.RESIDENT
        for block in range(last.first, last.first + last.count)
    )


def test_no_plan_any_longer() -> None:
    with_plan, without = settled("training"), settled("training")
    did = settled("training").step()
    with_plan.core.follow_plan(did.launches, did.moves)
    with_plan.core.follow_plan([], [])
    assert with_plan.step().commands == without.step().commands
    assert with_plan.core.statistics().planned_launches == 0


MOVE = PlannedMove(1, PlanPoint.AFTER_LAUNCH, PlannedKind.EVICT, 1, 0, 4)
EARLIER = PlannedMove(0, PlanPoint.AFTER_LAUNCH, PlannedKind.EVICT, 1, 0, 4)


@pytest.mark.parametrize(
    "moves",
    (
        pytest.param([PlannedMove(2, MOVE.point, MOVE.kind, 1, 0, 4)], id="no launch of the plan"),
        pytest.param([PlannedMove(1, MOVE.point, MOVE.kind, 1, 0, 0)], id="no block"),
        pytest.param([MOVE, EARLIER], id="launches out of order"),
        pytest.param(
            [MOVE, PlannedMove(1, PlanPoint.BEFORE_LAUNCH, MOVE.kind, 1, 0, 4)],
            id="points out of order",
        ),
        pytest.param([PlannedMove(1, MOVE.point, 7, 1, 0, 4)], id="no known kind"),  # type: ignore[arg-type]
        pytest.param([PlannedMove(1, 3, MOVE.kind, 1, 0, 4)], id="no known point"),  # type: ignore[arg-type]
    ),
)
def test_a_plan_that_cannot_be_is_refused_and_the_one_before_stays(
    moves: list[PlannedMove],
) -> None:
    run = settled("there and back")
    did = run.step()
    run.core.follow_plan(did.launches, did.moves)
    with pytest.raises(ValueError, match="plan"):
        run.core.follow_plan([100, 101], moves)
    run.step()
    assert run.core.statistics().planned_launches == len(did.launches)


def test_blocks_that_are_not_there() -> None:
    """A name that nothing has, blocks behind the end, and one that does not exist."""
    run = settled("there and back")
    assert run.core.name_block(0, 95) == (1, 95)
    assert run.core.name_block(0, 96) is None and run.core.name_block(9, 0) is None
    did = run.step()
    strange = [
        PlannedMove(0, PlanPoint.BEFORE_LAUNCH, PlannedKind.EVICT, 0xDEAD, 0, 4),
        PlannedMove(0, PlanPoint.BEFORE_LAUNCH, PlannedKind.PREFETCH, 1, 4096, 4),
        PlannedMove(0, PlanPoint.BEFORE_LAUNCH, PlannedKind.EVICT, 1, 2**32 - 1, 2**32 - 1),
    ]
    run.core.follow_plan(did.launches, [*strange, *did.moves])
    run.step()
    assert run.core.statistics().planned_launches == len(did.launches)


def followed(launched: list[int]) -> list[int]:
    """By each of the launches, how many of them the plan was followed at, from an iteration on that
    was as planned.
    """
    run = PlannedRun(*looping(there_and_back(96, 24), False))
    for _ in range(SETTLED):
        run.step()
    did = run.step()
    run.core.follow_plan(did.launches, did.moves)
    run.step()
    counts = []
    for number in launched:
        execution = there_and_back(96, 24)[number % len(did.launches)] if number >= 0 else None
        before = run.core.statistics().planned_launches
        ranges = execution.ranges if execution else [BlockRange(0, 0, 1)]
        run.writer.execute(execution.execution if execution else 77777, ranges)
        run.core.process(run.writer.take())
        counts.append(run.core.statistics().planned_launches - before)
    return counts


def test_one_odd_launch_does_not_lose_the_place_and_two_do() -> None:
    assert followed([0, 1, -1, 2, 3]) == [1, 1, 0, 1, 1]
    assert followed([0, 1, -1, -1, 2])[:4] == [1, 1, 0, 0]


def test_launches_that_are_left_out_do_not_lose_the_place() -> None:
    """What the plan has for them is done at the next."""
    assert followed([0, 1, 2, 10, 11]) == [1, 1, 1, 1, 1]
