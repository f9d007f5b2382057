"""What the core keeps of observed faults, and how long it asks for them."""

from __future__ import annotations

import pytest
from programs import Launch, sweep

from deepum.core import BlockRange, Core, CoreSettings, EventWriter
from deepum.core.records import FAULT_ATOMIC, FAULT_READ, FAULT_WRITE

SETTLED = 256  # launches, and two iterations


def program(**changes: int) -> tuple[Core, EventWriter]:
    core, writer = Core(CoreSettings.default(**changes)), EventWriter()
    writer.device(1 << 10)
    writer.allocate(0, 64)
    core.process(writer.take())
    return core, writer


def launch(core: Core, writer: EventWriter, launches: list[Launch]) -> list[bool]:
    """Whether faults are wanted after each launch."""
    wanted = []
    for one in launches:
        writer.execute(one.execution, one.ranges, one.stream)
        core.process(writer.take())
        wanted.append(core.wants_faults)
    return wanted


def test_blocks_that_faulted_and_those_that_were_written_are_known() -> None:
    core, writer = program()
    writer.fault(BlockRange(0, 1, 2), faults=5)
    writer.fault(BlockRange(0, 2, 2), faults=7, access=FAULT_READ | FAULT_WRITE)
    writer.fault(BlockRange(0, 6, 1), faults=11, access=FAULT_ATOMIC)
    writer.fault(BlockRange(0, 2, 1), faults=13)
    core.process(writer.take())
    seen = [core.block_state(0, block) & (Core.FAULTED | Core.WRITTEN) for block in range(8)]
    both = Core.FAULTED | Core.WRITTEN
    assert seen == [0, Core.FAULTED, both, both, 0, 0, both, 0]
    statistics = core.statistics()
    assert (statistics.faults_observed, statistics.faults_observed_writing) == (36, 18)


def test_a_new_allocation_has_no_history_of_faults() -> None:
    core, writer = program()
    writer.fault(BlockRange(0, 0, 64), access=FAULT_WRITE)
    writer.free(0)
    writer.allocate(0, 64)
    core.process(writer.take())
    assert not any(
        core.block_state(0, block) & (Core.FAULTED | Core.WRITTEN) for block in range(64)
    )


def test_faults_of_what_is_not_there_are_refused_and_not_counted() -> None:
    core, writer = program()
    writer.fault(BlockRange(0, 60, 5))
    writer.fault(BlockRange(9, 0, 1))
    core.process(writer.take())
    assert core.statistics().faults_observed == 0
    assert core.statistics().malformed_events == 2


@pytest.mark.parametrize("policy", [0, 1])
def test_a_loop_that_is_known_needs_no_faults_until_something_new_comes(policy: int) -> None:
    core, writer = program(policy=policy)
    assert core.wants_faults
    step = sweep(64, 16)
    wanted = [launch(core, writer, step) for _ in range(30)]
    assert all(all(seen) for seen in wanted[:3])
    assert not any(any(seen) for seen in wanted[-5:])
    assert launch(core, writer, [Launch(999, (BlockRange(0, 0, 1),))]) == [True]


def test_two_iterations_pass_before_a_loop_counts_as_known() -> None:
    core, writer = program()
    step = sweep(64, 64)
    # Longer than the fixed part.
    step = [Launch(i * 64 + one.execution, one.ranges) for i in range(16) for one in step]
    assert all(launch(core, writer, step * 3)[: len(step) * 3 - 1])
    assert not any(launch(core, writer, step * 2)[SETTLED + 8 :])


def test_launches_that_come_otherwise_than_predicted_ask_for_faults_again() -> None:
    core, writer = program()
    step = sweep(64, 16)
    launch(core, writer, step * 30)
    assert not core.wants_faults
    before = core.statistics().chain_restarts
    launch(core, writer, step[::-1] * 2)
    assert core.statistics().chain_restarts > before
    assert core.wants_faults


def test_only_launches_change_whether_faults_are_wanted() -> None:
    core, writer = program()
    launch(core, writer, sweep(64, 16) * 30)
    assert not core.wants_faults
    writer.allocate(1, 8)
    writer.fault(BlockRange(0, 0, 8))
    writer.synchronise()
    writer.lost(3)
    core.process(writer.take())
    assert not core.wants_faults
