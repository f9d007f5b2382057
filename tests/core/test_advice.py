"""Tables of which kernels use a few rows stay on the host, where memory is short and nothing else uses them."""

from __future__ import annotations

import pytest
from deepum._core import lib

from deepum.core import UM_BLOCK_BYTES, BlockRange, Command, Core, CoreSettings, EventWriter

SPARSE, COPY, OF_PROGRAM = lib.DEEPUM_EXECUTE_SPARSE, lib.DEEPUM_EXECUTE_COPY, lib.DEEPUM_ALLOCATION_OF_PROGRAM
SET_PREFERRED_LOCATION, UNSET_PREFERRED_LOCATION, SET_ACCESSED_BY, UNSET_ACCESSED_BY = 3, 4, 5, 6
CPU = -1
TABLE = BlockRange(0, 0, 20)
TO_STAY = [(SET_ACCESSED_BY, 0), (SET_PREFERRED_LOCATION, CPU)]
TO_COME_BACK = [(UNSET_PREFERRED_LOCATION, CPU), (UNSET_ACCESSED_BY, 0)]


class Program:
    """Slot 0 holds a table of 20 blocks, slot 1 what else there is."""

    def __init__(self, capacity: int = 16, flags: int = 0, **settings: int) -> None:
        self.core, self.writer = Core(CoreSettings.default(**{"headroom_blocks": 0, **settings})), EventWriter()
        self.writer.device(capacity)
        self.writer.allocate(0, 20, flags=flags)
        self.writer.allocate(1, 8)

    def launch(self, execution: int, where: BlockRange = TABLE, flags: int = 0) -> list[Command]:
        self.writer.execute(execution, unknown=(where,), flags=flags)
        self.core.process(self.writer.take())
        return self.core.take_commands()

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


def test_what_it_leaves_is_the_others() -> None:
    program = Program()
    program.gather(2)
    moved = {c.kind for c in program.launch(50, BlockRange(1, 0, 8))}
    assert moved == {"prefetch", "evict", "hold"}
    assert [c for i in range(4) for c in program.launch(50, BlockRange(1, 0, 8)) + program.gather(2) if c.kind != "hold"] == []


def test_a_dense_use_brings_it_back_for_good() -> None:
    program = Program()
    program.gather(2)
    commands = program.launch(50, BlockRange(0, 0, 6))
    assert advice(commands) == TO_COME_BACK
    assert [(c.first_block, c.block_count) for c in commands if c.kind == "advise"] == [(0, 6)] * 2
    assert program.core.statistics().remote_bytes == 14 * UM_BLOCK_BYTES
    assert advice(program.gather(10)) == [], "no to and fro"
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
    assert program.core.process(program.writer.take()) and program.core.statistics().remote_bytes == 0
    program.launch(50, BlockRange(1, 0, 8))
    assert 0 in {c.slot for c in program.gather(2) if c.kind == "prefetch"}, "moved as before"


def test_memory_that_is_freed_is_forgotten() -> None:
    program = Program()
    program.gather(2)
    program.writer.free(0)
    program.core.process(program.writer.take())
    assert program.core.statistics().remote_bytes == 0
