"""The learned tables stay within `table_mebibytes`, whatever new things a program comes up with."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from programs import Launch, there_and_back, write

from deepum.core import UM_BLOCK_BYTES, BlockRange, Core, CoreSettings, EventWriter

LIMIT = 1 << 20
Stream = Callable[[EventWriter, int], None]


def new_kernels(writer: EventWriter, number: int) -> None:
    """Each launch has another hash, and up to 19 runs."""
    writer.execute(
        number, [BlockRange(0, (number * 7 + i * 11) % 120, 1 + i % 3) for i in range(number % 20)]
    )


def new_small_kernels(writer: EventWriter, number: int) -> None:
    """Each launch has another hash and one run."""
    writer.execute(number, [BlockRange(0, number % 120, 1)])


def new_runs(writer: EventWriter, number: int) -> None:
    """Forty kernels that never touch the same blocks twice."""
    writer.execute(
        number % 40, [BlockRange(0, (number * i * 37) % 100, 1 + number % 27) for i in range(1, 40)]
    )


def new_contexts(writer: EventWriter, number: int) -> None:
    """Thirty kernels in ever other orders."""
    writer.execute((number * number // 7) % 30, [BlockRange(0, number % 30, 1)])


def new_allocations(writer: EventWriter, number: int) -> None:
    """Each with another name."""
    writer.allocate(1, 1, name=1 << 40 | number, generation=number)
    writer.execute(number % 50, [BlockRange(1, 0, 1)])
    writer.free(1, number)


def new_torch_blocks(writer: EventWriter, number: int) -> None:
    """More and more of PyTorch's blocks of one size live at a time, then none, and again of another
    size.
    """
    round_, at = divmod(number, 60)
    size = (1 + round_ % 2) * UM_BLOCK_BYTES
    writer.block(True, 0, at * 2 * UM_BLOCK_BYTES, size, 0)
    writer.execute(number, [BlockRange(0, at * 2, 1 + round_ % 2)])
    if at == 59:
        for i in range(60):
            writer.block(False, 0, i * 2 * UM_BLOCK_BYTES, size, 0)


def core_with_limit(mebibytes: int = 1, **changes: int) -> tuple[Core, EventWriter]:
    core, writer = Core(CoreSettings.default(table_mebibytes=mebibytes, **changes)), EventWriter()
    writer.device(64)
    writer.allocate(0, 128)
    core.process(writer.take())
    return core, writer


@pytest.mark.parametrize(
    "stream",
    [new_kernels, new_small_kernels, new_runs, new_contexts, new_allocations, new_torch_blocks],
)
def test_an_endless_stream_of_new_things_stays_within_the_limit(stream: Stream) -> None:
    core, writer = core_with_limit(execution_records=64)
    peak = 0
    for batch in range(250):
        for number in range(batch * 100, (batch + 1) * 100):
            stream(writer, number)
        core.process(writer.take())
        core.take_command_bytes()
        peak = max(peak, core.statistics().table_bytes)
        assert peak <= LIMIT
    assert core.statistics().malformed_events == 0
    # A table is of use still: a loop is learned.
    step = there_and_back(120, 12)
    core.process(write(writer, step * 6))
    before = core.statistics()
    core.process(write(writer, step * 2))
    assert core.statistics().predictions_right - before.predictions_right == 2 * len(step)


@pytest.mark.parametrize("stream", [new_kernels, new_small_kernels, new_allocations])
def test_the_limit_is_what_bounds_these_streams(stream: Stream) -> None:
    """With more allowed, more is kept."""
    reached = []
    for mebibytes in (1, 64):
        core, writer = core_with_limit(mebibytes)
        for number in range(25_000):
            stream(writer, number)
        core.process(writer.take())
        reached.append(core.statistics().table_bytes)
    assert LIMIT * 0.4 < reached[0] <= LIMIT < 1.5 * LIMIT < reached[1]


def test_what_lives_is_never_forgotten_for_its_names() -> None:
    """The names of living things alone exceed the limit: these are kept, and the launches go on."""
    core, writer = core_with_limit()
    small = UM_BLOCK_BYTES // 256
    for i in range(20_000):
        writer.block(True, 0, i * small, small, 0)
    core.process(writer.take())
    for launch in there_and_back(120, 12) * 3:
        core.process(write(writer, [launch]))
        assert all(
            core.block_state(0, block) & Core.RESIDENT
            for r in launch.ranges
            for block in range(r.first, r.first + r.count)
        )
    assert core.statistics().malformed_events == 0


def test_a_step_whose_tables_do_not_fit_still_runs() -> None:
    """Its launches come back unknown."""
    core, writer = core_with_limit()
    step = [
        Launch(i, tuple(BlockRange(0, (i + 3 * j) % 128, 1) for j in range(16)))
        for i in range(2000)
    ]
    for _ in range(3):
        core.process(write(writer, step))
        core.take_command_bytes()
    statistics = core.statistics()
    assert statistics.execution_ids < len(step)
    assert statistics.table_bytes <= LIMIT
    assert statistics.launches == 3 * len(step)
