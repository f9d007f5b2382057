"""The simulated mover carries populations out in a lane of their own, as the mover in the program
does (tests/runtime).
"""

from __future__ import annotations

import pytest
from deepum._core import lib

from deepum.core import UM_BLOCK_BYTES, BlockRange, CoreSettings, commands
from deepum.simulate.mode import LOCK_STEP
from deepum.simulate.replay import Outcome, machine, replay
from deepum.trace import Trace, TraceWriter, work

FURTHEST_NEXT_USE = 2
MS = 1e6  # ns
FIRST, LONG, SMALL, FRESH, BACK = 10, 20, 30, 40, 50  # executions


def launch(
    writer: TraceWriter, execution: int, where: BlockRange, ns: float, stream: int = 0
) -> None:
    access = work.Access(
        where.slot,
        work.READ | work.WRITE,
        where.first * UM_BLOCK_BYTES,
        where.count * UM_BLOCK_BYTES,
    )
    writer.launch(execution, [where], [access], ns, stream)


def trace() -> Trace:
    """A card of 16 blocks. Stream 0 uses 12 of slot 1, and another for which eight leave; a long
    kernel of stream 1 uses 4 of PyTorch's memory, slot 0, which is taken back while it runs. Then
    stream 0 makes content that takes their space, and two blocks that left come back.
    """
    writer = TraceWriter()
    writer.device(16)
    writer.allocate(0, 4)
    writer.allocate(1, 40)
    writer.block(True, 0, 0, 4 * UM_BLOCK_BYTES, 4 * UM_BLOCK_BYTES)
    launch(writer, FIRST, BlockRange(1, 0, 12), MS)
    launch(writer, LONG, BlockRange(0, 0, 4), 40 * MS, stream=1)
    launch(writer, SMALL, BlockRange(1, 12, 1), MS)
    writer.block(False, 0, 0, 4 * UM_BLOCK_BYTES, 0)
    launch(writer, FRESH, BlockRange(1, 20, 8), MS)
    launch(writer, BACK, BlockRange(1, 0, 2), MS)
    writer.synchronise()
    return writer.trace("populations")


def run(fetches: bool = True) -> Outcome:
    settings = CoreSettings.default(
        eviction_order=FURTHEST_NEXT_USE, headroom_blocks=0, invalidation=1, prefetch_degree=0
    )
    return replay(
        trace(),
        machine("v100-16gb"),
        settings,
        16 * UM_BLOCK_BYTES,
        keep_commands=True,
        keep_launches=True,
        keep_activities=True,
        without_prefetch=not fetches,
        mode=LOCK_STEP,
    )


def moves(outcome: Outcome, kind: str) -> list[tuple[float, float]]:
    """Start and end, ns, of what was moved over the link."""
    found = outcome.activities[
        (outcome.activities["kind"] == getattr(lib, f"DEEPUM_ACTIVITY_{kind}"))
        & (outcome.activities["bytes"] > 0)
    ]
    return list(zip(found["start_ns"].tolist(), found["end_ns"].tolist(), strict=True))


def test_a_population_that_waits_for_a_discard_does_not_hold_up_a_prefetch_behind_it() -> None:
    outcome = run()
    given = list(commands(outcome.commands))
    (dropped,) = [c.id for c in given if c.kind == "discard"]
    (waits,) = [c.id for c in given if c.kind == "populate" and c.after_move == dropped]
    (back,) = [c for c in given if c.kind == "prefetch"]
    assert back.id > waits
    (evicted,), (fetched,) = moves(outcome, "EVICT"), moves(outcome, "PREFETCH")
    assert evicted[1] <= fetched[0] < fetched[1] < outcome.launches[1].end, (
        "while the discard waits for the long kernel"
    )


def test_a_launch_is_held_for_a_population_as_for_a_prefetch() -> None:
    """The small one's has no space before the eviction is done; what is fetched is there before its
    launch.
    """
    outcome = run()
    small = outcome.launches[2]
    ((_, evicted),) = moves(outcome, "EVICT")
    assert small.reached < evicted <= small.ready
    assert outcome.counters["bytes_demand"] == 0


def test_without_prefetching_both_only_wait() -> None:
    whole, outcome = run(), run(fetches=False)
    assert outcome.counters["bytes_prefetched"] == 0
    assert (
        outcome.counters["bytes_missing"]
        == outcome.counters["bytes_accessed"]
        > whole.counters["bytes_missing"]
    )
    assert outcome.launches[2].ready == pytest.approx(whole.launches[2].ready), "held all the same"
    assert outcome.commands == whole.commands
