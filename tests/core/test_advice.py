"""Tables of which kernels use a few rows stay on the host, where memory is short and nothing else
uses them.
"""

from __future__ import annotations

import pytest
from deepum._core import lib
from mover import BRINGS

from deepum.core import UM_BLOCK_BYTES, BlockRange, Command, Core, CoreSettings, EventWriter

SPARSE, COPY, OF_PROGRAM = (
    lib.DEEPUM_EXECUTE_SPARSE,
    lib.DEEPUM_EXECUTE_COPY,
    lib.DEEPUM_ALLOCATION_OF_PROGRAM,
)
SET_PREFERRED_LOCATION, UNSET_PREFERRED_LOCATION, SET_ACCESSED_BY, UNSET_ACCESSED_BY = 3, 4, 5, 6
CPU = -1
TABLE = BlockRange(0, 0, 20)
TO_STAY = [(SET_ACCESSED_BY, 0), (SET_PREFERRED_LOCATION, CPU)]
TO_COME_BACK = [(UNSET_PREFERRED_LOCATION, CPU), (UNSET_ACCESSED_BY, 0)]


class Program:
    """Slot 0 holds a table of 20 blocks, slot 1 what else there is."""

    def __init__(self, capacity: int = 16, flags: int = 0, **settings: int) -> None:
        self.core, self.writer = (
            Core(CoreSettings.default(**{"headroom_blocks": 0, **settings})),
            EventWriter(),
        )
        self.writer.device(capacity)
        self.writer.allocate(0, 20, flags=flags)
        self.writer.allocate(1, 8)

    def launch(self, execution: int, where: BlockRange = TABLE, flags: int = 0) -> list[Command]:
        self.writer.execute(execution, unknown=(where,), flags=flags)
        self.core.process(self.writer.take())
        return self.core.take_commands()

    def idle(self, launches: int) -> None:
        """Launches that use no memory."""
        for number in range(launches):
            self.writer.execute(5000 + number, ())

    def gather(self, times: int, where: BlockRange = TABLE) -> list[Command]:
        return [command for i in range(times) for command in self.launch(i, where, SPARSE)]


def advice(commands: list[Command]) -> list[tuple[int, int]]:
    return [(c.advice, c.location) for c in commands if c.kind == "advise"]


def test_from_the_second_gather_on_a_table_is_used_where_it_is() -> None:
    program = Program()
    assert advice(program.gather(1)) == []
    commands = program.launch(2, flags=SPARSE)
    assert advice(commands) == TO_STAY and {c.kind for c in commands} == {"advise"}
    assert all((c.slot, c.first_block, c.block_count) == (0, 0, 20) for c in commands)
    assert program.core.statistics().remote_bytes == 20 * UM_BLOCK_BYTES
    assert program.gather(5) == [], "neither advised again nor moved"


def test_what_is_on_the_device_stays_and_is_not_asked_for_again() -> None:
    """If the driver takes it, it is as good on the host."""
    program = Program(confidence_launches=20)
    program.gather(2)
    assert [c.kind for c in program.gather(200)] == []
    assert program.core.statistics().bytes_prefetched_again == 0


def test_a_table_that_the_program_prefers_on_the_device_goes_there() -> None:
    program = Program()
    program.writer.program_advise(TABLE, 0, SET_PREFERRED_LOCATION)
    assert advice(program.gather(5)) == []
    assert program.core.statistics().remote_bytes == 0


def test_what_it_leaves_is_the_others() -> None:
    program = Program()
    program.gather(2)
    moved = {c.kind for c in program.launch(50, BlockRange(1, 0, 8))}
    assert moved == {"populate", "evict", "hold"}
    assert [
        c
        for i in range(4)
        for c in program.launch(50, BlockRange(1, 0, 8)) + program.gather(2)
        if c.kind != "hold"
    ] == []


def test_a_dense_use_brings_it_back_for_good() -> None:
    program = Program()
    program.gather(2)
    commands = program.launch(50, BlockRange(0, 0, 6))
    assert advice(commands) == TO_COME_BACK
    assert [(c.first_block, c.block_count) for c in commands if c.kind == "advise"] == [(0, 6)] * 2
    assert program.core.statistics().remote_bytes == 14 * UM_BLOCK_BYTES
    assert advice(program.gather(10)) == [(SET_ACCESSED_BY, 0)], "mapped, and no to and fro"
    assert advice(program.launch(50, BlockRange(0, 0, 6)) + program.gather(10)) == []
    assert all(program.core.block_state(0, block) & Core.RESIDENT for block in range(6))


def test_prefetches_come_behind_what_calls_a_table_back() -> None:
    program = Program()
    program.launch(50, BlockRange(1, 0, 8))
    program.gather(2)
    program.launch(51, BlockRange(1, 0, 8))
    called_back = program.launch(52)
    last = max(c.id for c in called_back if c.kind == "advise")
    fetched = [c for c in called_back if c.kind == "prefetch"]
    assert fetched and min(c.id for c in fetched) > last


@pytest.mark.parametrize(
    ("why", "changes", "where"),
    [
        ("all fits", {"capacity": 64}, TABLE),
        ("too small", {}, BlockRange(0, 0, 3)),
        ("the program's own", {"flags": OF_PROGRAM}, TABLE),
        ("switched off", {"advice": 0}, TABLE),
        ("only watching", {"policy": 0}, TABLE),
    ],
)
def test_left_alone(why: str, changes: dict[str, int], where: BlockRange) -> None:
    assert advice(Program(**changes).gather(6, where)) == [], why


def test_a_gathers_result_is_no_table() -> None:
    program = Program()
    commands = []
    for i in range(6):
        commands += program.launch(2 * i, TABLE, SPARSE) + program.launch(2 * i + 1, TABLE)
    assert advice(commands) == []


def test_copies_say_nothing() -> None:
    program = Program()
    program.gather(1)
    assert advice(program.launch(9, flags=COPY)) == []
    assert advice(program.launch(2, flags=SPARSE)) == TO_STAY
    assert advice(program.launch(9, flags=COPY)) == []


def test_another_tensor_in_its_place_starts_anew() -> None:
    program = Program()
    size = 20 * UM_BLOCK_BYTES
    program.writer.block(True, 0, 0, size, size)
    program.gather(2)
    program.writer.block(False, 0, 0, size, 0)
    program.writer.block(True, 0, 0, size, size)
    assert advice(program.launch(9)) == TO_COME_BACK
    program.writer.block(False, 0, 0, size, 0)
    program.writer.block(True, 0, 0, size, size)
    assert advice(program.gather(2)) == TO_STAY


@pytest.mark.parametrize("status", [2, 3])
def test_advice_that_was_not_taken_is_not_believed(status: int) -> None:
    program = Program()
    program.gather(1)
    first, _ = program.launch(2, flags=SPARSE)
    program.writer.moved(first.id, status)
    assert (
        program.core.process(program.writer.take()) and program.core.statistics().remote_bytes == 0
    )
    program.launch(50, BlockRange(1, 0, 8))
    assert 0 in {c.slot for c in program.gather(2) if c.kind == "prefetch"}, "moved as before"


def test_memory_that_is_freed_is_forgotten() -> None:
    program = Program()
    program.gather(2)
    program.writer.free(0)
    program.core.process(program.writer.take())
    assert program.core.statistics().remote_bytes == 0


LOOKED_UP, OPTIMIZER, OTHERS = 1, 2, 3  # executions
SHARED, REST = BlockRange(0, 0, 12), BlockRange(1, 0, 8)


def trained(iterations: int = 4, **settings: int) -> tuple[Program, list[Command]]:
    """A table that is gathered from and updated as a whole in each iteration, with others on the
    card in between; what was decided. Four of its blocks have no room then.
    """
    program = Program(**settings)
    commands = []
    for _ in range(iterations):
        commands += (
            program.launch(LOOKED_UP, SHARED, SPARSE)
            + program.launch(OPTIMIZER, SHARED)
            + program.launch(OTHERS, REST)
        )
    return program, commands


def moved(commands: list[Command], *kinds: str) -> set[tuple[int, int]]:
    """By commands of these kinds; to the device, if none is named."""
    return {
        (c.slot, block)
        for c in commands
        if c.kind in (kinds or BRINGS)
        for block in range(c.first_block, c.first_block + c.block_count)
    }


def missing(program: Program) -> set[tuple[int, int]]:
    return {
        (0, block) for block in range(12) if not program.core.block_state(0, block) & Core.RESIDENT
    }


def test_a_table_that_an_optimizer_uses_too_is_mapped_and_brought_for_that_alone() -> None:
    program, commands = trained()
    assert advice(commands) == [(SET_ACCESSED_BY, 0)], "as a whole, once"
    away = missing(program)
    assert len(away) >= 4
    assert program.launch(LOOKED_UP, SHARED, SPARSE) == []
    assert moved(program.launch(OPTIMIZER, SHARED)) == away
    program.launch(OTHERS, REST)
    assert missing(program)
    program.writer.execute(LOOKED_UP, unknown=(SHARED, BlockRange(0, 19, 1)), flags=SPARSE)
    program.core.process(program.writer.take())
    assert moved(program.core.take_commands()) == {(0, 19)}, "the result alone"
    assert program.core.statistics().remote_bytes == 0


@pytest.mark.parametrize("order", [1, 2])
def test_what_launches_to_come_look_up_is_not_brought_ahead_for_them(order: int) -> None:
    program, _ = trained(12, eviction_order=order, launch_queue=0, prefetch_degree=1)
    for _ in range(3):
        away = missing(program)
        assert away
        assert (
            moved(program.launch(LOOKED_UP, SHARED, SPARSE) + program.launch(OPTIMIZER, SHARED))
            >= away
        )
        assert (0, 0) not in moved(program.launch(OTHERS, REST)), "the next one looks up"


def test_a_lookup_is_no_use_of_what_is_mapped() -> None:
    """By next use the table goes, which the optimizer needs last of all, although it is looked up
    before others are used.
    """
    program = Program(eviction_order=2, launch_queue=64, prefetch_degree=1)
    table, short = BlockRange(0, 0, 8), BlockRange(0, 8, 8)

    def begin() -> set[tuple[int, int]]:
        program.launch(OTHERS, REST)
        program.launch(OPTIMIZER, table)
        program.idle(64)
        return moved(program.launch(4, short), "evict")

    for _ in range(4):
        begin()
        program.idle(8)
        program.launch(LOOKED_UP, table, SPARSE)
        program.idle(60)
        program.launch(OTHERS + 100, REST)
        program.idle(120)
    assert begin() == {(0, block) for block in range(8)}


def test_what_is_read_in_place_hides_nothing_that_may_leave() -> None:
    """By next use, with all that is there used just now: the mapped table, which a lookup does not
    renew, was used longest ago and may not leave, so that others leave for the lookup's result.
    """
    program = Program(eviction_order=2, launch_queue=64, prefetch_degree=1)
    table, result = BlockRange(0, 0, 8), BlockRange(0, 19, 1)

    for _ in range(4):
        program.launch(OPTIMIZER, table)
        program.idle(100)
        program.launch(LOOKED_UP, table, SPARSE)
        program.idle(100)
        program.launch(OTHERS, BlockRange(0, 8, 11))
    program.writer.execute(OPTIMIZER + 10, unknown=(table, REST))
    assert advice(program.launch(LOOKED_UP, table, SPARSE)) == [], "it is mapped"
    program.writer.execute(OPTIMIZER + 10, unknown=(table, REST))
    program.writer.execute(LOOKED_UP + 10, unknown=(table, result), flags=SPARSE)
    program.core.process(program.writer.take())
    commands = program.core.take_commands()
    assert moved(commands) == {(0, 19)}
    assert {slot for slot, _ in moved(commands, "evict")} == {1}


def test_a_table_is_mapped_only_where_memory_is_short_and_that_is_asked_for() -> None:
    assert advice(trained(capacity=64)[1]) == []
    assert advice(trained(advice=0)[1]) == []


def test_a_mapped_table_is_the_drivers_to_bring_once_there_is_room_for_all() -> None:
    """While it is mapped the driver leaves it on the host, and the optimizer reads and writes all of
    it over the link.
    """
    program, _ = trained(capacity=20)
    program.launch(OTHERS, BlockRange(0, 12, 8))
    assert missing(program)
    program.writer.free(1)
    assert advice(program.launch(LOOKED_UP, SHARED, SPARSE)) == []
    assert advice(program.launch(OPTIMIZER, SHARED)) == [(UNSET_ACCESSED_BY, 0)]
    assert not missing(program)
    assert program.launch(LOOKED_UP, SHARED, SPARSE) == program.launch(OPTIMIZER, SHARED) == []
    program.writer.allocate(1, 8)
    assert advice(program.launch(LOOKED_UP, SHARED, SPARSE)) == [(SET_ACCESSED_BY, 0)]


def test_new_content_in_the_place_of_a_mapped_table_is_brought_again() -> None:
    program, size = Program(), SHARED.count * UM_BLOCK_BYTES
    program.writer.block(True, 0, 0, size, size)
    for _ in range(4):
        program.launch(LOOKED_UP, SHARED, SPARSE)
        program.launch(OPTIMIZER, SHARED)
        program.launch(OTHERS, REST)
    program.writer.block(False, 0, 0, size, 0)
    program.writer.block(True, 0, 0, size, size)
    program.core.process(program.writer.take())
    commands = program.core.take_commands()
    assert [
        (c.advice, c.location) for c in commands for _ in range(c.block_count) if c.kind == "advise"
    ] == [(UNSET_ACCESSED_BY, 0)] * 12
    away = missing(program)
    assert away
    assert moved(program.launch(LOOKED_UP, SHARED, SPARSE)) == away


@pytest.mark.parametrize("status", [2, 3])
def test_a_table_that_could_not_be_mapped_is_brought_for_all(status: int) -> None:
    program, commands = trained()
    (given,) = [c for c in commands if c.kind == "advise"]
    program.writer.moved(given.id, status)
    away = missing(program)
    commands = program.launch(LOOKED_UP, SHARED, SPARSE)
    assert advice(commands) == [], "nor tried again"
    assert moved(commands) == away != set()
