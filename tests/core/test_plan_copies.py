"""A plan says what is on both sides of the link: what is copied to the host while it stays, and
what comes back with the host's copy kept. And a planned prefetch takes the room of the dead.
"""

from __future__ import annotations

import pytest
from duplicating import SET_READ_MOSTLY, Program, Step, blocks, span, uses

from deepum.core import (
    UM_BLOCK_BYTES,
    BlockRange,
    Command,
    Core,
    CoreSettings,
    EventWriter,
    PlannedKind,
    PlannedMove,
    PlanPoint,
)

X = BlockRange(0, 0, 4)
WRITES, READS = Step(1, written=(X,)), Step(2, read=(X,))
REST = [uses(100 + i, BlockRange(1, 4 * i, 4)) for i in range(5)]
ITERATION = [WRITES, READS, *REST]
LAUNCHES = [step.execution for step in ITERATION]
SLOT_0 = 1  # the name of the first allocation


def move(launch: int, kind: PlannedKind) -> PlannedMove:
    return PlannedMove(launch, PlanPoint.AFTER_LAUNCH, kind, SLOT_0, 0, 4)


def followed(
    moves: list[PlannedMove], iteration: list[Step] = ITERATION, **settings: int
) -> tuple[Program, list[list[Command]]]:
    """By launch of an iteration under a plan, what was commanded. Before it are enough without a
    plan for all to be known, and one with it.
    """
    made = Program(16, (8, 20), **settings)
    made.run(iteration, 4)
    made.core.follow_plan([step.execution for step in iteration], moves)
    made.run(iteration)
    return made, [made.launch(step) for step in iteration]


def test_what_is_copied_out_leaves_without_a_copy() -> None:
    _, plain = followed([move(3, PlannedKind.EVICT)], advice=0)
    assert blocks(plain[3], "evict") == span(0, 0, 4) and not blocks(plain[3], "drop")
    _, ahead = followed([move(1, PlannedKind.COPY_OUT), move(3, PlannedKind.EVICT)])
    assert blocks(ahead[1], "copy_out") == span(0, 0, 4)
    assert blocks(ahead[3], "drop") == span(0, 0, 4) and not blocks(ahead[3], "evict")


def test_a_copy_waits_for_the_launch_at_which_it_is_planned() -> None:
    made, did = followed([move(1, PlannedKind.COPY_OUT)])
    (copy,) = [command for command in did[1] if command.kind == "copy_out"]
    # Behind it only the launches of the rest have come.
    assert copy.after_sequence == made.writer.sequence - len(REST)


def test_without_clean_pages_nothing_is_copied_out() -> None:
    _, did = followed([move(1, PlannedKind.COPY_OUT), move(3, PlannedKind.EVICT)], advice=0)
    assert blocks(did[3], "evict") == span(0, 0, 4)
    assert not any(blocks(each, kind) for each in did for kind in ("copy_out", "drop", "advise"))


READ_ONLY = [Step(1, read=(X,)), READS, *REST]


@pytest.mark.parametrize(
    "comes_back, leaves_by",
    ((PlannedKind.DUPLICATE, "drop"), (PlannedKind.PREFETCH, "evict")),
    ids=("with the host's copy", "alone"),
)
def test_what_comes_back_with_the_hosts_copy_leaves_without_one(
    comes_back: PlannedKind, leaves_by: str
) -> None:
    """A plan with a duplicate decides on all of them: what it fetches otherwise is on one side,
    though it is only read, so that clean pages would be tried for it.
    """
    other = PlannedMove(6, PlanPoint.AFTER_LAUNCH, PlannedKind.DUPLICATE, SLOT_0, 6, 1)
    back = move(6, comes_back)
    made, did = followed([move(2, PlannedKind.EVICT), back, other], READ_ONLY)
    assert [each for each in blocks(did[2], leaves_by) if each in span(0, 0, 4)] == span(0, 0, 4)
    assert not set(blocks(did[6], "advise", SET_READ_MOSTLY)) & set(span(0, 0, 4))
    again = made.run(READ_ONLY)
    assert [each for each in blocks(again, leaves_by) if each in span(0, 0, 4)] == span(0, 0, 4)


def test_beside_a_plan_that_says_so_nothing_else_is_written_back() -> None:
    """A plan that says nothing of it leaves it to what goes on without a plan."""
    other = PlannedMove(6, PlanPoint.AFTER_LAUNCH, PlannedKind.COPY_OUT, SLOT_0, 6, 1)
    evicts = PlannedMove(6, PlanPoint.AFTER_LAUNCH, PlannedKind.EVICT, SLOT_0, 6, 1)
    copied = {
        kind: any(blocks(each, "copy_out") for each in followed([planned])[1])
        for kind, planned in (("copies", other), ("evicts", evicts))
    }
    assert copied == {"copies": False, "evicts": True}
    made, _ = followed([other])
    made.core.follow_plan([], [])
    assert any(blocks(made.run(ITERATION), "copy_out") for _ in range(3))


def test_what_a_plan_keeps_on_the_device_was_not_copied_out_in_vain() -> None:
    """Without the plan X leaves, so that its copy pays; the plan has the rest leave instead."""
    made = Program(16, (8, 20))
    made.run(ITERATION, 4)
    copied = [blocks(made.launch(step), "copy_out") for step in (WRITES, READS)]
    assert set(span(0, 0, 4)) <= {block for each in copied for block in each}
    rest = [
        PlannedMove(2 + i, PlanPoint.AFTER_LAUNCH, PlannedKind.EVICT, SLOT_0 + 1, 4 * i, 4)
        for i in range(len(REST))
    ]
    other = PlannedMove(6, PlanPoint.AFTER_LAUNCH, PlannedKind.COPY_OUT, SLOT_0, 6, 1)
    made.core.follow_plan(LAUNCHES, [*rest, other])
    under_plan = [command for step in (*REST, *ITERATION) for command in made.launch(step)]
    assert not {(0, 0)} & {*blocks(under_plan, "evict"), *blocks(under_plan, "drop")}, "it stays"
    made.core.follow_plan([], [])
    again = made.run(ITERATION, 3)
    assert set(span(0, 0, 4)) <= set(blocks(again, "copy_out"))


@pytest.mark.parametrize("order", (0, 1, 2))
def test_a_planned_prefetch_takes_the_room_of_what_is_dead(order: int) -> None:
    """The card is full: 8 blocks of slot 0, and a block of PyTorch's with 8 that dies. Slot 2 is
    planned to come then, and does so at once, not when a launch needs it.
    """
    core = Core(CoreSettings.default(headroom_blocks=0, eviction_order=order))
    writer = EventWriter()
    writer.device(16)
    writer.allocate(0, 8, name=50)
    writer.allocate(1, 8, name=51)
    writer.allocate(2, 8, name=52)
    tensor = 8 * UM_BLOCK_BYTES

    def iteration() -> list[list[Command]]:
        did = []
        for number in range(4):
            if number == 1:
                writer.block(True, 1, 0, tensor, tensor)
            if number == 2:
                writer.block(False, 1, 0, tensor, 0)
            slot = (0, 1, 0, 2)[number]
            writer.execute(100 + number, [BlockRange(slot, 0, 8)])
            core.process(writer.take())
            did.append(core.take_commands())
        return did

    for _ in range(6):
        iteration()
    name = core.name_block(2, 0)
    left = core.name_block(0, 0)
    assert name is not None and left is not None
    core.follow_plan(
        [100, 101, 102, 103],
        [
            PlannedMove(2, PlanPoint.BEFORE_LAUNCH, PlannedKind.PREFETCH, name[0], 0, 8),
            PlannedMove(3, PlanPoint.AFTER_LAUNCH, PlannedKind.EVICT, name[0], 0, 8),
        ],
    )
    iteration()
    did = iteration()
    assert blocks(did[2], "discard") == span(1, 0, 8)
    assert blocks(did[2], "prefetch") == span(2, 0, 8)
    assert not blocks(did[3], "prefetch") and not blocks(did[2], "evict")
