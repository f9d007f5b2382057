"""What a core records of an iteration, and when its launches had completed."""

from __future__ import annotations

import struct

from deepum._core import lib

from deepum.core import UM_BLOCK_BYTES, BlockRange, Core, EventWriter, Recording

USE = struct.Struct("<QIIIIIBBH")
LAUNCH = struct.Struct("<QQ")


class Program:
    """A core, and events for it."""

    def __init__(self) -> None:
        self.core, self.writer = Core(), EventWriter()
        self.writer.device(64)

    def go(self) -> None:
        self.core.process(self.writer.take())


def uses(recording: Recording) -> list[tuple[int, ...]]:
    """(launch, slot, block, first, count, kind) each."""
    return [fields[1:7] for fields in USE.iter_unpack(recording.uses)]


def test_launches_are_recorded_with_what_they_use_and_whether_they_write() -> None:
    program = Program()
    program.writer.allocate(0, 8, name=7)
    program.go()
    program.core.record(2)
    program.writer.execute(100, [BlockRange(0, 0, 3)])
    program.go()
    assert program.core.recorded() is None
    program.writer.execute(101, [BlockRange(0, 4, 2)])
    program.writer.execute(102, [BlockRange(0, 7, 1)])
    program.go()
    recording = program.core.recorded()
    assert recording is not None and recording.launch_count == 2
    assert list(LAUNCH.iter_unpack(recording.launches)) == [(100, 1), (101, 2)]
    wrote = lib.DEEPUM_RECORDED_WRITES
    assert uses(recording) == [(0, 0, 0, 0, 3, wrote), (1, 0, 4, 4, 2, wrote)]
    assert program.core.name_block(0, 4) == (USE.unpack_from(recording.uses, USE.size)[0], 4)
    program.core.record(0)
    assert program.core.recorded() is None


def test_ends_of_content_are_recorded_before_the_launch_that_comes_next() -> None:
    program = Program()
    program.writer.allocate(0, 8)
    program.writer.block(True, 0, 0, 4 * UM_BLOCK_BYTES, 4 * UM_BLOCK_BYTES)
    program.go()
    program.core.record(2)
    program.writer.execute(100, [BlockRange(0, 0, 4)])
    program.writer.block(False, 0, 0, 4 * UM_BLOCK_BYTES, 0)
    program.writer.execute(101, [BlockRange(0, 5, 1)])
    program.go()
    recording = program.core.recorded()
    assert recording is not None
    ends = [use for use in uses(recording) if use[5] == lib.DEEPUM_RECORDED_ENDS]
    assert ends == [(1, 0, 0, 0, 4, lib.DEEPUM_RECORDED_ENDS)]


def test_an_odd_launch_begins_the_recording_anew() -> None:
    program = Program()
    program.writer.allocate(0, 40)

    def iteration(odd: int | None = None) -> None:
        for i in range(40):
            execution = 999 if i == odd else 100 + i
            program.writer.execute(execution, [BlockRange(0, i, 1)])
        program.writer.synchronise()
        program.go()

    for _ in range(6):
        iteration()
    assert program.core.statistics().iteration_launches == 40
    program.core.record(40)
    iteration(odd=20)
    assert program.core.recorded() is None
    iteration()
    recording = program.core.recorded()
    assert recording is not None
    hashes = [execution for execution, _ in LAUNCH.iter_unpack(recording.launches)]
    assert sorted(hashes) == [100 + i for i in range(40)]


def test_times_of_launches_are_those_of_progress_events_less_nothing_that_was_lost() -> None:
    program = Program()
    program.writer.allocate(0, 8)
    sequences = [program.writer.execute(100, [BlockRange(0, 0, 1)]) for _ in range(2)]
    program.writer.progress(0, sequences[1], sequences[1], 500)
    program.go()
    assert program.core.launch_times() == []  # nobody wanted them
    program.core.want_times(True)
    assert program.core.wants_faults
    sequences += [program.writer.execute(101, [BlockRange(0, 0, 1)]) for _ in range(3)]
    program.writer.progress(0, sequences[3], sequences[4], 900)
    program.writer.waited(0, sequences[4], 120)
    program.writer.progress(0, sequences[4], sequences[4], 1400)
    program.go()
    times = [(t.launch, t.completed_at, t.waited) for t in program.core.launch_times()]
    assert times == [(4, 900, None), (5, 1400, 120)]
    assert program.core.launch_times() == []
    program.writer.progress(0, sequences[4], sequences[4], 1500)  # nothing new has completed
    program.go()
    assert program.core.launch_times() == []
