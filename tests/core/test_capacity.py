"""What a device is believed to hold: as told, as free memory tells while it fills, and by what the
driver takes on its own.
"""

from __future__ import annotations

from deepum._core import lib

from deepum.core import UM_BLOCK_BYTES, BlockRange, Core, CoreSettings, EventWriter

TOLD = 1000  # UM blocks
SHARE = TOLD // 64  # of these, what an iteration's losses take off at most
ALL = (1 << 64) - 1  # all launches are done
PAUSE = 300  # launches: longer than what counts as an iteration where none is known


class Program:
    """A core that is told of one device and one allocation."""

    def __init__(self, blocks: int, **changes: int) -> None:
        self.core, self.writer = (
            Core(CoreSettings.default(headroom_blocks=0, **changes)),
            EventWriter(),
        )
        self.writer.device(TOLD)
        self.writer.allocate(0, blocks)
        self.process()

    def process(self) -> None:
        self.core.process(self.writer.take())

    def launch(self, first: int, count: int, execution: int | None = None) -> int:
        """Its sequence."""
        sequence = self.writer.execute(
            first if execution is None else execution, [BlockRange(0, first, count)]
        )
        self.process()
        return sequence

    def read(self, free: int, completed: int = ALL, begun: int = ALL, reserve: int = 0) -> int:
        """What it believes that the device holds, once that much is free."""
        self.writer.free_memory(free, completed, begun, reserve)
        self.process()
        return self.capacity

    @property
    def capacity(self) -> int:
        return self.core.statistics().capacity_bytes // UM_BLOCK_BYTES

    def look(self, completed: int, faults: BlockRange | None = None) -> int:
        """What it believes after a look for faults, before which the launches up to `completed`
        were done.
        """
        self.writer.progress(0, completed, completed)
        if faults is not None:
            self.writer.fault(faults)
        self.process()
        return self.capacity


def test_free_memory_tells_what_others_have_taken() -> None:
    program = Program(900)
    program.launch(0, 400)
    assert program.capacity == TOLD
    assert program.read(free=500) == 900
    assert program.core.statistics().capacity_withdrawn_bytes == 100 * UM_BLOCK_BYTES


def test_what_was_launched_and_has_not_run_is_not_there_yet() -> None:
    program = Program(900)
    done = program.launch(0, 300)
    running = program.launch(300, 200)
    program.launch(500, 400)
    assert program.read(free=700, completed=done, begun=running) == TOLD, (
        "300 to 500 blocks are there, so there may be 1000"
    )
    assert program.read(free=450, completed=done, begun=running) == 950
    assert program.read(free=450, completed=done, begun=done) == 750


def test_little_differences_change_nothing() -> None:
    program = Program(900)
    program.launch(0, 400)
    assert program.read(free=TOLD - 400 - 8) == TOLD
    assert program.read(free=TOLD - 400 - 9) == TOLD - 9


def test_memory_that_others_give_back_is_there_again_and_no_more_than_was_told() -> None:
    program = Program(900)
    done = program.launch(0, 400)
    program.launch(400, 100)
    assert program.read(free=400, completed=done) == 900
    assert program.read(free=450, completed=done) == 900, (
        "what was launched since may have taken it"
    )
    assert program.read(free=550, completed=done) == 950
    assert program.read(free=900) == TOLD


def test_a_reserve_stays_free() -> None:
    program = Program(900)
    program.launch(0, 400)
    assert program.read(free=500, reserve=64) == 836
    assert program.read(free=30, reserve=64) == 366


def test_memory_that_was_freed_is_not_counted_twice() -> None:
    program = Program(500)
    program.writer.allocate(1, 300)
    program.launch(0, 200)
    program.writer.execute(99, [BlockRange(1, 0, 300)])
    program.writer.free(1)
    program.process()
    assert program.read(free=700) == 900


def test_what_commands_bring_may_be_there_before_its_launch() -> None:
    program = Program(1200)  # more than there is: what launches touch is brought by command
    done = program.launch(0, 100)
    program.launch(100, 500)
    assert program.read(free=500, completed=done, begun=done) == TOLD
    assert program.read(free=300, completed=done, begun=done) == 900


def test_once_something_left_free_memory_tells_nothing() -> None:
    program = Program(1200)
    for first in range(0, 1200, 100):
        program.launch(first, 100)
    assert any(command.kind == "evict" for command in program.core.take_commands())
    assert program.read(free=0) == TOLD
    program = Program(900)
    program.launch(0, 400)
    program.writer.program_prefetch(BlockRange(0, 0, 10), -1)
    assert program.read(free=500) == TOLD


def test_after_lost_events_nobody_knows_what_is_there() -> None:
    program = Program(900)
    program.launch(0, 400)
    program.writer.lost(3)
    program.writer.allocate(0, 900)
    program.process()
    program.launch(0, 100)
    assert program.read(free=100) == TOLD


def test_readings_are_wanted_while_much_is_allocated_and_launches_are_new() -> None:
    little, much = Program(124), Program(125)
    little.launch(0, 1)
    much.launch(0, 1)
    assert (little.core.wants_free_memory, much.core.wants_free_memory) == (False, True)
    for _ in range(600):
        much.launch(0, 1)
    assert not much.core.wants_free_memory, "nothing new is loaded"
    much.launch(0, 1, execution=77)
    assert much.core.wants_free_memory
    watching = Program(500, policy=0)
    watching.launch(0, 1)
    assert not watching.core.wants_free_memory


def test_a_capacity_that_falls_by_an_event_keeps_what_was_withdrawn_and_a_new_device_does_not() -> (
    None
):
    program = Program(900)
    program.launch(0, 400)
    program.read(free=500)
    program.writer.capacity(800)
    program.process()
    assert program.capacity == 700
    program.writer.device(TOLD)
    program.process()
    assert program.capacity == TOLD


def full_program() -> tuple[Program, int]:
    """One that has used all of its memory by command, and the sequence of its last launch; all
    faults are told.
    """
    program = Program(1200)
    done = 0
    for first in range(0, 1000, 50):
        done = program.launch(first, 50)
    program.look(done)
    program.look(done)
    return program, done


def test_each_block_that_the_driver_took_is_one_too_many() -> None:
    program, done = full_program()
    assert program.look(done, BlockRange(0, 100, 3)) == TOLD - 3
    assert program.core.statistics().driver_evictions_seen == 3


def test_an_iteration_takes_off_only_so_much() -> None:
    program, done = full_program()
    assert program.look(done, BlockRange(0, 0, 400)) == TOLD - SHARE
    assert program.look(done, BlockRange(0, 500, 100)) == TOLD - SHARE
    for _ in range(PAUSE):
        program.launch(950, 1)
    done = program.launch(950, 1)
    program.look(done)
    assert program.look(done, BlockRange(0, 700, 100)) == TOLD - 2 * SHARE


def test_no_more_than_half_is_ever_taken_off() -> None:
    program, done = full_program()
    for _ in range(70):
        for _ in range(PAUSE):
            done = program.launch(990, 1)
        program.look(done)
        program.look(done, BlockRange(0, 0, 1000))
    assert program.capacity == TOLD // 2


def test_what_was_just_brought_may_have_come_late() -> None:
    program = Program(1200)
    for first in range(0, 1000, 50):
        done = program.launch(first, 50)
    assert program.look(done, BlockRange(0, 100, 3)) == TOLD, "the first look at its faults"
    program, done = full_program()
    late = program.launch(1000, 50)
    assert program.look(late, BlockRange(0, 1000, 50)) == TOLD
    assert program.look(late, BlockRange(0, 1000, 50)) == TOLD - SHARE


def test_faults_without_pressure_or_of_what_is_not_believed_there_are_none() -> None:
    program = Program(900)
    for first in range(0, 900, 50):
        done = program.launch(first, 50)
    program.look(done)
    assert program.look(done, BlockRange(0, 100, 3)) == TOLD
    program, done = full_program()
    assert program.look(done, BlockRange(0, 1100, 3)) == TOLD


def test_faults_are_wanted_for_as_long_as_the_driver_takes_something() -> None:
    program, done = full_program()
    for _ in range(1000):
        done = program.launch(950, 1)
    assert not program.core.wants_faults
    program.look(done)
    program.look(done, BlockRange(0, 100, 3))
    assert not program.core.wants_faults, "only launches change that"
    program.launch(950, 1)
    assert program.core.wants_faults


def test_a_budget_is_believed_whatever_was_withdrawn() -> None:
    program = Program(900)
    program.launch(0, 400)
    assert program.read(free=500) == 900
    program.writer.setting(lib.DEEPUM_SETTING_BUDGET, 950 * UM_BLOCK_BYTES)
    program.process()
    assert program.capacity == 950
    assert program.core.statistics().capacity_withdrawn_bytes == 0
