"""Clean copies without faults: operators declare what their launches only read, once, and what was
never declared may be written.
"""

from __future__ import annotations

import pytest
from deepum._core import lib
from duplicating import SET_READ_MOSTLY, Program, Step, blocks, span, uses

from deepum.core import BlockRange, Command, Core, CoreSettings, EventWriter

BY_OPERATORS = int(lib.DEEPUM_WRITES_BY_OPERATORS)
X = BlockRange(0, 0, 4)
REST = [uses(100 + i, BlockRange(1, 4 * i, 4)) for i in range(5)]  # makes all leave
IDLE = [uses(200 + i, BlockRange(1, 19, 1)) for i in range(35)]
UNDECLARED, DECLARED = Step(1, unknown=(X,)), Step(1, read=(X,))


def program(**settings: int) -> Program:
    """A card of 16 UM blocks; slot 0 holds what is asked about."""
    return Program(16, (8, 20), **{"writes": BY_OPERATORS, **settings})


def duplicates(made: Program, step: Step, times: int = 6) -> list[tuple[int, int]]:
    """Blocks of slot 0 that are duplicated in so many iterations."""
    advised = blocks(made.run([step, *REST, *IDLE], times), "advise", SET_READ_MOSTLY)
    return [one for one in advised if one[0] == 0]


def test_what_nobody_declared_is_not_duplicated() -> None:
    assert duplicates(program(), UNDECLARED) == []
    assert duplicates(program(writes=lib.DEEPUM_WRITES_BY_FAULTS), UNDECLARED) == span(0, 0, 4)


def test_where_nothing_is_declared_commands_are_those_without_clean_copies() -> None:
    """What a copy reads, and a memset writes, is known without a declaration."""
    step = [Step(i, unknown=(BlockRange(1, 4 * i, 4),)) for i in range(5)]

    def commands(**settings: int) -> list[Command]:
        made, given = program(**settings), []
        for _ in range(12):
            given += made.run([UNDECLARED, *step, *IDLE])
            made.writer.execute(50, read=(BlockRange(1, 0, 1),), flags=lib.DEEPUM_EXECUTE_COPY)
            given += made.decided()
        return given

    assert commands() == commands(advice=lib.DEEPUM_ADVISE_NOTHING)
    assert any(one.kind == "evict" for one in commands())


def test_what_was_declared_once_is_known_from_then_on() -> None:
    made = program()
    made.run([UNDECLARED, *REST, *IDLE], 3)
    made.run([DECLARED, *REST, *IDLE])
    commands = made.run([UNDECLARED, *REST, *IDLE], 3)
    left = [one for one in commands if one.slot == 0 and one.kind in ("drop", "evict", "collapse")]
    assert {one.kind for one in left} == {"drop"}


def test_a_launch_without_a_fault_is_not_taken_for_a_reader() -> None:
    """PROGRESS events come for the times of launches, and tell nothing of faults."""
    made = program()
    made.run([DECLARED, *REST, *IDLE], 6)
    for _ in range(3):
        made.launch(DECLARED)
        assert blocks(made.launch(uses(9, X)), "collapse") == span(0, 0, 4), "it may be written"
        made.run([*REST, *IDLE, DECLARED, *REST, *IDLE], 2)


def test_reads_are_wanted_while_launches_are_new_and_memory_is_short() -> None:
    fits = Program(64, (8, 20), writes=BY_OPERATORS)
    fits.run([UNDECLARED, *REST])
    assert not fits.core.wants_reads
    made = program()
    made.run([UNDECLARED, *REST])
    assert made.core.wants_reads
    made.run([UNDECLARED, *REST, *IDLE], 20)
    assert not made.core.wants_reads, "nothing is new"
    made.launch(uses(999, X))
    assert made.core.wants_reads


def test_nobody_asks_for_reads_without_duplicates_or_where_faults_tell() -> None:
    for settings in ({"advice": lib.DEEPUM_ADVISE_REMOTE}, {"writes": lib.DEEPUM_WRITES_BY_FAULTS}):
        made = program(**settings)
        made.run([UNDECLARED, *REST], 2)
        assert made.core.wants_faults and not made.core.wants_reads


def test_a_recording_has_what_was_not_declared_as_written() -> None:
    made = program()
    made.run([UNDECLARED, *REST, *IDLE], 3)
    made.run([DECLARED, *REST, *IDLE])
    made.core.record(1 + len(REST) + len(IDLE))
    made.run([UNDECLARED, *REST, *IDLE])
    recording = made.core.recorded()
    assert recording is not None
    assert recording.blocks_read == 4


def test_an_unknown_way_to_know_writes_is_refused() -> None:
    with pytest.raises(ValueError):
        Core(CoreSettings.default(writes=2))


def test_a_shared_edge_is_written_where_one_argument_of_it_is() -> None:
    """A declared range and one that is not may share a UM block."""
    made = program()
    both = Step(1, read=(BlockRange(0, 0, 4),), unknown=(BlockRange(0, 3, 3),))
    advised = duplicates(made, both)
    assert set(advised) == set(span(0, 0, 3))


def test_events_of_other_programs_are_as_before() -> None:
    core, writer = Core(CoreSettings.default(writes=BY_OPERATORS)), EventWriter()
    writer.device(1 << 10)
    writer.allocate(0, 64)
    core.process(writer.take())
    assert not core.wants_reads and core.wants_faults
