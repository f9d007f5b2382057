"""How late a move comes that waits for a launch: markers of the simulated program lie where those
of a real one do (tests/runtime).

In lock-step; behind gates each launch has a marker.
"""

from __future__ import annotations

import pytest
from deepum._core import lib
from small import MIB

from deepum.core import BlockRange, CoreSettings
from deepum.simulate.mode import LOCK_STEP
from deepum.simulate.replay import Outcome, machine, replay
from deepum.trace import TraceWriter, work

MS = 1e6  # ns


def run(blocks: int) -> Outcome:
    """A card of 256 UM blocks. A launch uses `blocks` of slot 0, ten long ones a small array, the
    last one what these have to leave for.
    """
    writer = TraceWriter()
    writer.device(256)
    for slot, size in enumerate((128, 1, 160)):
        writer.allocate(slot, size)

    def launch(execution: int, where: BlockRange, ns: float, last: bool = False) -> None:
        access = work.Access(where.slot, work.READ | work.WRITE, 0, where.count * 2 * MIB)
        writer.launch(execution, [where], [access], ns, ends_step=last)

    launch(1, BlockRange(0, 0, blocks), MS)
    for _ in range(10):
        launch(2, BlockRange(1, 0, 1), 10 * MS)
    launch(3, BlockRange(2, 0, 160), MS, last=True)
    settings = CoreSettings.default(headroom_blocks=0, prefetch_degree=0)
    # While readings of free memory are wanted markers lie closer.
    return replay(
        writer.trace("markers"),
        machine("v100-16gb"),
        settings,
        512 * MIB,
        without_free_memory=True,
        mode=LOCK_STEP,
        keep_launches=True,
        keep_activities=True,
    )


@pytest.mark.parametrize(("blocks", "waited_for"), [(128, 0), (127, 1), (117, 10)])
def test_an_eviction_waits_for_the_marker_behind_its_launch(blocks: int, waited_for: int) -> None:
    """There is one behind 256 MiB, of one launch or of several; behind less it lies where the
    program was when somebody asked.
    """
    outcome = run(blocks)
    evictions = outcome.activities[outcome.activities["kind"] == lib.DEEPUM_ACTIVITY_EVICT]
    assert len(evictions) > 0
    launches = outcome.launches
    assert launches[waited_for].end <= evictions["start_ns"].min() < launches[waited_for + 1].end
