"""What ends duplication, and what it waits for; and what is not duplicated for it would have to be
ended soon.
"""

from __future__ import annotations

from duplicating import Program, Step, blocks, uses

from deepum.core import BlockRange, Command

X = BlockRange(0, 0, 4)
# Makes all leave that is used before it.
REST = [uses(100 + i, BlockRange(1, 4 * i, 4)) for i in range(5)]
IDLE = [Step(200 + i) for i in range(95)]  # 100 launches make 5 a twentieth of an iteration
READS, WRITES = Step(1, read=(X,)), Step(2, written=(X,))


def program(**settings: int) -> Program:
    """A card of 16 blocks; slot 0 holds what is asked about, slot 1 what else an iteration uses."""
    return Program(16, (8, 20), **settings)


def of_x(commands: list[Command], kind: str) -> list[Command]:
    return [c for c in commands if c.slot == 0 and c.kind == kind]


def test_a_collapse_waits_for_the_prefetch_that_it_follows() -> None:
    made = program()
    made.run([READS, *REST, *IDLE], 3)
    (brought,) = of_x(made.launch(READS), "prefetch")
    (collapse,) = of_x(made.launch(WRITES), "collapse")
    assert collapse.after_move == brought.id


def test_a_collapse_does_not_come_between_prefetches() -> None:
    """It waits for copies out, which prefetches do not: what is fetched ahead for a launch that
    writes comes in one move, as its duplication ends in another.
    """
    made = program(launch_queue=0, prefetch_degree=2)
    step = [READS, *REST, *IDLE[:20], WRITES, *REST, *IDLE[20:]]
    made.run(step, 5)
    commands = made.run(step[:26], look=False)
    assert [c.block_count for c in of_x(commands, "drop")] == [4]
    assert [c.block_count for c in of_x(commands, "collapse")] == [4]
    assert [c.block_count for c in of_x(commands, "prefetch")] == [4]


def test_what_was_written_just_before_it_left_is_not_duplicated_when_it_comes_back() -> None:
    """Before a twentieth of an iteration has gone by it may well be written again."""
    made = program()
    step = [WRITES, *REST[:4], uses(3, X), Step(4, written=(X,)), *IDLE, *REST]
    assert of_x(made.run(step, 5), "advise") == []
    made = program()
    step = [WRITES, *REST[:4], *IDLE[:10], uses(3, X), *IDLE[10:], *REST]
    assert of_x(made.run(step, 5), "advise") != []


def test_a_prefetch_of_what_may_have_gone_does_not_wait_for_its_copy() -> None:
    """It is there still, as far as anybody knows."""
    made = program(confidence_launches=20)
    made.run([WRITES, *IDLE[:60], READS, *REST, *IDLE[60:]], 5)
    copied = of_x([*made.launch(WRITES), *made.run(IDLE[:60])], "copy_out")
    assert copied
    made.writer.fault(BlockRange(0, 7, 1))  # beside it: the driver may have taken X
    (again,) = of_x(made.launch(READS), "prefetch")
    assert again.after_move == 0
    assert blocks([again], "prefetch") == blocks(copied, "copy_out")


def test_a_collapse_waits_for_the_copy_that_would_undo_it_and_for_the_prefetch_since() -> None:
    """The copy may still be queued behind others when the prefetch, which did not wait for it, is
    done.
    """
    made = program(confidence_launches=20)
    made.run([WRITES, *IDLE[:60], READS, *REST, *IDLE[60:]], 5)
    copied = of_x([*made.launch(WRITES), *made.run(IDLE[:60])], "copy_out")
    made.writer.fault(BlockRange(0, 7, 1))  # beside it: the driver may have taken X
    (again,) = of_x(made.launch(READS), "prefetch")
    commands = made.launch(WRITES)
    collapses = [c for c in commands if c.kind == "collapse"]
    assert [(c.block_count, c.after_move) for c in collapses] == [(0, copied[-1].id), (4, again.id)]
