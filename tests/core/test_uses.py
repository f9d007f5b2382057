"""What launches do with what they touch is learned: writes by trial, where they would fault; next
uses by their distance.
"""

from __future__ import annotations

import pytest
from duplicating import Program, Step, blocks, span, uses

from deepum.core import BlockRange, Command
from deepum.core.records import FAULT_WRITE

MOST_TRIALS = 1 << 14
SETTLED = 256  # launches
X, Y = BlockRange(0, 0, 4), BlockRange(0, 4, 4)
# Makes all leave that is used before it.
REST = [uses(100 + i, BlockRange(1, 4 * i, 4)) for i in range(5)]
READERS = (uses(1, X), uses(2, X), uses(3, X))


def program(**settings: int) -> Program:
    """A card of 16 blocks; slot 0 holds what is asked about, slot 1 what else an iteration uses."""
    return Program(16, (8, 20), **settings)


def collapsed_by(commands: list[Command]) -> list[tuple[int, int]]:
    return blocks(commands, "collapse")


def duplicated(*steps: Step, **settings: int) -> Program:
    """Iterations of these; what they use on slot 0 is there and on the host then. What they do with
    it is not known yet.
    """
    made = program(**settings)
    made.run([*steps, *REST])
    made.run([*steps, *REST], 2, look=False)
    for step in steps:
        made.launch(step)
    return made


def proven(*steps: Step) -> Program:
    """The same, and it is known that they read."""
    made = duplicated(*steps)
    made.look()
    made.look()
    return made


@pytest.mark.parametrize("report", ["nothing", "faults"])
def test_nothing_is_duplicated_before_faults_are_told(report: str) -> None:
    made = program()
    commands = []
    for _ in range(6):
        commands += made.run([uses(1, X), *REST], look=False)
        if report == "faults":
            made.writer.fault(X, access=FAULT_WRITE)
            commands += made.decided()
    assert {c.kind for c in commands} == {"prefetch", "populate", "evict", "hold"}
    made.look()
    assert "drop" in {c.kind for c in made.run([uses(1, X), *REST], 3)}


@pytest.mark.parametrize("advice", [0, 1])
def test_nothing_is_duplicated_where_advice_does_not_say_so(advice: int) -> None:
    made = program(advice=advice)
    assert {c.kind for c in made.run([uses(1, X), *REST], 6)} == {
        "prefetch",
        "populate",
        "evict",
        "hold",
    }


def test_who_is_not_blamed_reads_and_nobody_asks_any_longer() -> None:
    made = program()
    wanted = []
    for _ in range(2 * SETTLED // len(REST)):
        made.run([uses(1, X), *REST])
        wanted.append(made.core.wants_faults)
    assert wanted[0] and not wanted[-1]


def test_faults_are_asked_for_while_uses_are_tried() -> None:
    """Every launch is known, and comes as predicted; but none is seen to have completed."""
    made = program()
    made.run([uses(1, X), *REST])
    for _ in range(2 * SETTLED // len(REST)):
        made.run([uses(1, X), *REST], look=False)
    assert made.core.wants_faults
    alone = program(advice=1)
    alone.run([uses(1, X), *REST], 2 * SETTLED // len(REST), look=False)
    assert not alone.core.wants_faults


def test_the_only_one_that_ran_is_blamed() -> None:
    made = duplicated(uses(1, X))
    made.look(X)
    assert collapsed_by(made.launch(uses(2, Y))) == []
    assert collapsed_by(made.launch(uses(1, X))) == span(0, 0, 4)


@pytest.mark.parametrize("first", [1, 2])
def test_of_several_the_first_is_blamed_that_is_not_known_to_read(first: int) -> None:
    """What ran behind the write was no trial any more."""
    made = proven(uses(3, X))
    for execution in (3, first, 3 - first):
        made.launch(uses(execution, X))
    made.look(X)
    assert collapsed_by(made.launch(uses(3, X))) == []
    assert collapsed_by(made.launch(uses(3 - first, X))) == []
    assert collapsed_by(made.launch(uses(first, X))) == span(0, 0, 4)


@pytest.mark.parametrize("which", [0, 1])
def test_of_each_stream_the_first_is_blamed(which: int) -> None:
    """Which was the first of them is not known."""
    steps = uses(1, X), uses(2, X, stream=1)
    made = duplicated(*steps)
    made.look(X)
    assert collapsed_by(made.launch(steps[which])) == span(0, 0, 4)


def test_who_wrote_behind_another_that_was_blamed_is_found_where_it_is_tried_alone() -> None:
    made = duplicated(uses(1, X), uses(2, X))
    made.look(X)
    made.run(REST, look=False)
    made.launch(uses(2, X))
    assert collapsed_by(made.look(X)) == []
    assert collapsed_by(made.launch(uses(2, X))) == span(0, 0, 4)


def test_who_is_known_to_read_is_blamed_where_nobody_else_was() -> None:
    made = proven(uses(1, X))
    assert collapsed_by(made.launch(uses(1, X))) == []
    made.look(X)
    assert collapsed_by(made.launch(uses(1, X))) == span(0, 0, 4)


def test_other_blocks_make_nobody_suspect() -> None:
    made = duplicated(uses(1, X), uses(2, Y))
    made.look(X)
    assert collapsed_by(made.launch(uses(2, Y))) == []
    assert collapsed_by(made.launch(uses(1, X))) == span(0, 0, 4)


@pytest.mark.parametrize("stream", [0, 1])
def test_each_stream_is_looked_at_by_itself(stream: int) -> None:
    """2 had completed at the look before, 1 had not begun at this one, or runs on a stream that was
    not looked at.
    """
    made = duplicated(uses(1, X), uses(2, X, stream=stream))
    one = made.launch(uses(2, X, stream=stream))
    reached = made.writer.sequence
    made.writer.progress(stream, reached, reached)
    made.writer.progress(stream, reached, reached)
    made.launch(uses(1, X))
    made.writer.progress(stream, reached, reached)
    made.writer.fault(X, access=FAULT_WRITE)
    assert collapsed_by([*one, *made.decided()]) == []


def test_what_had_not_begun_is_not_blamed() -> None:
    made = duplicated(uses(1, X))
    begun = made.writer.sequence
    made.launch(uses(2, X))
    made.writer.progress(0, 0, begun)
    made.writer.fault(X, access=FAULT_WRITE)
    made.decided()
    assert collapsed_by(made.launch(uses(2, X))) == []
    assert collapsed_by(made.launch(uses(1, X))) == span(0, 0, 4)


def test_what_had_completed_before_is_not_blamed() -> None:
    made = duplicated(uses(1, X))
    made.look()
    made.launch(uses(2, X))
    made.look(X)
    assert collapsed_by(made.launch(uses(1, X))) == []
    assert collapsed_by(made.launch(uses(2, X))) == span(0, 0, 4)


@pytest.mark.parametrize("others", [100, MOST_TRIALS])
def test_no_more_is_kept_in_mind_than_the_latest_trials(others: int) -> None:
    made = duplicated(uses(1, X), uses(2, Y))
    for _ in range(others):
        made.writer.execute(2, (Y,))
    made.decided()
    made.look(X)
    assert collapsed_by(made.launch(uses(1, X))) == (span(0, 0, 4) if others < MOST_TRIALS else [])


def test_what_an_allocation_did_is_not_said_of_the_next_in_its_slot() -> None:
    made = duplicated(uses(1, X), uses(2, X))
    made.writer.free(0)
    made.writer.allocate(0, 8, generation=2)
    made.look(X)
    made.run([uses(1, X), uses(2, X), *REST], 3, look=False)
    made.launch(uses(2, X))
    assert collapsed_by(made.launch(uses(1, X))) == []


@pytest.mark.parametrize("blocks", [1, 8])
def test_lost_events_prove_nothing(blocks: int) -> None:
    """Faults may be among them. The allocation may be announced again with another size, too."""
    made = duplicated(uses(1, X))
    made.look()
    made.writer.lost(1)
    made.writer.allocate(0, blocks)
    made.writer.allocate(1, 20)
    made.look()
    made.writer.lost(1)
    made.writer.allocate(0, 8)
    made.writer.allocate(1, 20)
    made.run([uses(1, X), uses(2, X), *REST], 3, look=False)
    made.launch(uses(2, X))
    made.launch(uses(1, X))
    made.look(X)
    assert collapsed_by(made.launch(uses(1, X))) == span(0, 0, 4)


def test_progress_that_cannot_be_is_survived() -> None:
    made = duplicated(uses(1, X))
    malformed = made.core.statistics().malformed_events
    for stream in (64, 1 << 31, (1 << 32) - 1):
        made.writer.progress(stream, 0, 1 << 63)
    made.decided()
    assert made.core.statistics().malformed_events == malformed + 3
    for completed, begun in ((1 << 64) - 1, 0), (0, (1 << 64) - 1), (5, 3), (0, 0):
        made.writer.progress(0, completed, begun)
    made.decided()
    made.run([uses(1, X), *REST], 2)
    made.launch(uses(2, X))
    made.look(X)
    assert collapsed_by(made.launch(uses(1, X))) == []
    assert collapsed_by(made.launch(uses(2, X))) == span(0, 0, 4)


def test_an_argument_that_comes_twice_is_learned_like_one() -> None:
    """Also after the same kernel had it once."""
    for before in (X,), (X, X, Y):
        made = duplicated(Step(1, unknown=before), uses(2, Y))
        made.look()
        made.look()
        made.run(REST, look=False)
        made.launch(Step(1, unknown=(X, X, Y) if before == (X,) else (X, Y)))
        made.look(Y)
        assert set(collapsed_by(made.launch(Step(1, unknown=(X, Y))))) >= set(span(0, 4, 4))


def test_what_an_execution_did_to_others_is_not_said_of_what_it_touches_now() -> None:
    made = duplicated(uses(1, X), uses(2, Y))
    made.launch(uses(1, Y))
    made.look(X)
    assert collapsed_by(made.launch(uses(1, Y))) == []


def test_what_was_forgotten_is_not_said_of_what_has_its_number_now() -> None:
    """More kernels come than are kept in mind; each takes the number of one before."""
    made = duplicated(uses(1, X), uses(2, Y), execution_ids=16)
    for execution in range(300, 316):
        made.launch(uses(execution, Y))
    made.look(X)
    assert [
        block
        for execution in range(300, 316)
        for block in collapsed_by(made.launch(uses(execution, Y)))
    ] == []
