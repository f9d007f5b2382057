"""The chain: what it predicts, where it breaks, how it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from driving import Session
from mover import BRINGS, Machine
from programs import Launch, kernels, there_and_back, write

from deepum.core import BlockRange, Core, CoreSettings, EventWriter, events

TABLES, HISTORY = 0, 1
OLDEST_LAST_USE = 1


def predictor(**changes: int) -> tuple[Core, EventWriter]:
    """A core with one allocation that does not fit, that predicts by its tables unless told
    otherwise. What was used longest ago leaves first, so that a sweep leaves nothing from before.
    """
    changes = {
        "launch_queue": 0,
        "prediction": TABLES,
        "eviction_order": OLDEST_LAST_USE,
        **changes,
    }
    core, writer = Core(CoreSettings.default(**changes)), EventWriter()
    writer.device(64)
    writer.allocate(0, 128)
    core.process(writer.take())
    return core, writer


def wrong(core: Core, writer: EventWriter, step: Sequence[Launch], times: int) -> int:
    """Predictions that were wrong, while a step is repeated; at each launch there must have been
    one.
    """
    before = core.statistics()
    core.process(write(writer, list(step) * times))
    after = core.statistics()
    assert after.predictions - before.predictions == len(step) * times
    return (after.predictions - after.predictions_right) - (
        before.predictions - before.predictions_right
    )


@pytest.mark.parametrize("step", ["abcXdefgXhijkXl", "aPQXdbPQXe", "XXXa", "aXbXcXdX"])
def test_three_launches_of_context_tell_the_calls_of_a_kernel_apart(step: str) -> None:
    core, writer = predictor()
    core.process(write(writer, kernels(step) * 6))
    assert wrong(core, writer, kernels(step), 10) == 0


def test_what_lies_four_launches_back_is_not_told_apart() -> None:
    core, writer = predictor()
    core.process(write(writer, kernels("aPQRXdbPQRXe") * 6))
    assert wrong(core, writer, kernels("aPQRXdbPQRXe"), 10) == 20  # d and e, each time


@pytest.mark.parametrize(("records", "expected"), [(1, 20), (2, 0)])
def test_a_kernel_in_more_contexts_than_records_is_predicted_by_the_latest(
    records: int, expected: int
) -> None:
    core, writer = predictor(execution_records=records)
    core.process(write(writer, kernels("abXcdeXf") * 6))
    assert wrong(core, writer, kernels("abXcdeXf"), 10) == expected


def test_without_a_record_of_the_context_the_one_that_agrees_longest_is_taken() -> None:
    core, writer = predictor()
    # X after "abc" goes to d, after "efg" to h; after "zbc", which is new, to what followed "abc"
    # though "efg" was later.
    core.process(write(writer, kernels("abcXd....efgXh....") * 4 + kernels("zbcX")))
    before = core.statistics()
    core.process(write(writer, kernels("d")))
    after = core.statistics()
    assert (
        after.predictions - before.predictions,
        after.predictions_right - before.predictions_right,
    ) == (1, 1)


def test_a_branch_taken_every_third_iteration_costs_little() -> None:
    """No context tells when it is taken. Each surprise restarts the chain, and that is all."""
    step = there_and_back(36, 18)
    branch = [Launch(9000 + i, (BlockRange(1, 2 * i, 2),)) for i in range(3)]
    with_branch = [*step[:20], *branch, *step[20:]]

    def missed(policy: int) -> tuple[int, Session]:
        session = Session(Machine(30, Random(0)), (36, 6), policy=policy, headroom_blocks=3)
        session.step([*step, *step, *with_branch] * 3)
        warm = session.core.statistics().chain_restarts
        found = session.step([*step, *step, *with_branch] * 6)
        assert session.core.statistics().chain_restarts - warm <= 6 * 3
        assert session.machine.violations == []
        return found, session

    on_demand, _ = missed(policy=0)
    chained, session = missed(policy=1)
    assert session.core.statistics().predictions > session.core.statistics().predictions_right
    assert on_demand > 100
    assert chained <= on_demand / 10


@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_window_that_exceeds_memory_stalls_the_chain_and_room_restarts_it(order: int) -> None:
    step = there_and_back(96, 8)  # 12 blocks a launch
    session = Session(Machine(30, Random(0)), (96,), eviction_order=order, headroom_blocks=2)
    session.step(step * 6)
    stalled = session.core.statistics()
    assert stalled.window_stalls > len(step)
    session.machine.capacity = 90
    session.writer.capacity(90)
    session.core.process(session.writer.take())
    session.step(step * 2)
    assert session.step(step) == 0
    assert session.core.statistics().window_stalls < stalled.window_stalls + 4 * len(step)
    assert session.machine.violations == []


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("capacity", [1, 2, 9])
def test_a_launch_larger_than_memory_goes_on(order: int, capacity: int) -> None:
    """It has to fault; but nothing waits for itself, and what is believed is never more than there
    is.
    """
    session = Session(Machine(capacity, Random(0)), (24, 8), eviction_order=order)
    step = [*there_and_back(24, 2), Launch(7, (BlockRange(0, 0, 24), BlockRange(1, 0, 8)))]
    for _ in range(5):
        session.step(step)
        assert session.core.statistics().resident_bytes <= capacity << 21
    assert not any(session.machine.waiting.values())


def ahead_and_late(
    core: Core, writer: EventWriter, launches: Sequence[Launch], of: Launch
) -> tuple[int, int]:
    """UM blocks of `of`'s launch that were prefetched before it was launched, and with it. It is
    the last of the launches.
    """
    core.take_command_bytes()
    records = write(writer, launches)
    core.process(records)
    last = max(event.sequence for event in events(records))
    mine = {(r.slot, block) for r in of.ranges for block in range(r.first, r.first + r.count)}
    counts = [0, 0]
    for command in core.take_commands():
        for block in range(command.first_block, command.first_block + command.block_count):
            if command.kind in BRINGS and (command.slot, block) in mine:
                counts[command.cause == last] += 1
    return counts[0], counts[1]


@pytest.mark.parametrize(("rows", "ways", "kept"), [(1, 2, 2), (1, 4, 4), (2048, 2, 10)])
def test_a_block_table_that_is_full_forgets(rows: int, ways: int, kept: int) -> None:
    """Runs that the table has no place for are not fetched ahead, but with the launch itself."""
    core, writer = predictor(block_table_rows=rows, block_table_ways=ways)
    wide = Launch(1, tuple(BlockRange(0, 4 * i, 1) for i in range(10)))
    sweep = [Launch(100 + i, (BlockRange(0, 64 + 8 * i, 8),)) for i in range(8)]
    core.process(write(writer, [*sweep, wide] * 6))
    assert ahead_and_late(core, writer, [*sweep, wide], wide) == (kept, 10 - kept)


@pytest.mark.parametrize("runs", [448, 1900])
def test_of_a_launch_with_many_tensors_most_are_fetched_ahead(runs: int) -> None:
    """A row that is full leaves single runs out; the chain goes on behind them."""
    core, writer = (
        Core(
            CoreSettings.default(launch_queue=0, prediction=TABLES, eviction_order=OLDEST_LAST_USE)
        ),
        EventWriter(),
    )
    writer.device(8000)
    writer.allocate(0, 12000)
    wide = Launch(1, tuple(BlockRange(0, 2 * i, 1) for i in range(runs)))
    sweep = [Launch(100 + i, (BlockRange(0, 4000 + 800 * i, 800),)) for i in range(10)]
    core.process(writer.take() + write(writer, [*sweep, wide] * 6))
    ahead, late = ahead_and_late(core, writer, [*sweep, wide], wide)
    assert ahead > 0.85 * runs
    assert ahead + late == runs


@pytest.mark.parametrize("successors", [1, 4])
def test_of_the_successors_the_most_recent_is_followed(successors: int) -> None:
    """A kernel that takes other blocks now is expected to take these again."""
    core, writer = predictor(block_table_successors=successors)
    first, second = (
        Launch(1, tuple(BlockRange(0, block, 1) for block in (0, middle, 30)))
        for middle in (10, 20)
    )
    sweep = [Launch(100 + i, (BlockRange(0, 64 + 8 * i, 8),)) for i in range(8)]
    core.process(write(writer, [*sweep, first] * 4 + [*sweep, second] * 2))
    assert ahead_and_late(core, writer, [*sweep, second], second) == (3, 0)
    assert ahead_and_late(core, writer, [*sweep, first], first) == (2, 1)


def test_execution_ids_longest_unused_are_recycled() -> None:
    """A loop keeps its IDs although new kernels never end."""
    core, writer = predictor(execution_ids=16)
    loop = kernels("abcdefgh")
    for i in range(200):
        core.process(write(writer, [*loop, Launch(10_000 + i, ())]))
        assert core.statistics().execution_ids <= 16
    before = core.statistics()
    core.process(write(writer, loop * 5))
    after = core.statistics()
    # Of the first round only what comes after the last new kernel is a surprise.
    assert after.predictions_right - before.predictions_right >= 5 * 8 - 6


def test_more_kernels_in_a_step_than_ids_are_kept() -> None:
    """Nothing is known when it comes back; the launches get their blocks all the same."""
    core, writer = predictor(execution_ids=16)
    step = [Launch(i, (BlockRange(0, 3 * i, 3),)) for i in range(40)]
    for _ in range(5):
        for launch in step:
            core.process(write(writer, [launch]))
            assert all(
                core.block_state(0, block) & Core.RESIDENT
                for r in launch.ranges
                for block in range(r.first, r.first + r.count)
            )
    statistics = core.statistics()
    assert statistics.execution_ids == 16
    assert statistics.predictions_right == 0
    assert statistics.malformed_events == 0
