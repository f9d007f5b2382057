"""The belief about residency heals: what the driver took behind the core's back comes back, and
what is there is asked for seldom.

Nobody reports faults. The driver takes random blocks, and serves what a launch misses over the link
instead of moving it, as it does with pages that thrash (docs/um-model.md): so only the core's
commands bring a block back.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from driving import Session
from mover import Machine
from programs import Launch, sweep, there_and_back

from deepum.core import UM_BLOCK_BYTES, CoreSettings

DOUBT_SHARE, FREE_DOUBTS = 24, 5  # native/core/memory/residency.cpp


class Stubborn(Machine):
    """Misses are counted, and leave everything where it is."""

    def run_launch(self) -> None:
        event = self.launched.popleft()
        del self.unfinished[event.sequence]
        self.faults += sum(
            (r.slot, block) not in self.resident
            for r in event.ranges
            for block in range(r.first, r.first + r.count)
        )

    def take(self, blocks: int) -> None:
        """The driver evicts random ones."""
        self.driver_evictions += blocks
        self.resident.difference_update(self.random.sample(sorted(self.resident), blocks))


def check_healing(session: Session, step: Sequence[Launch], losses: int, share: float) -> None:
    """Steady first; then losses at random launches of an iteration. Nothing is missed any longer
    once 24 times what is on the device was fetched and one further iteration is over.
    """
    machine = session.machine
    assert isinstance(machine, Stubborn)

    def iterate(begin: int, end: int) -> int:
        found = session.step(step[begin:end])
        if end == len(step):
            session.wait()
        return found

    for _ in range(6):
        iterate(0, len(step))
    assert iterate(0, len(step)) == 0
    missed = 0
    for _ in range(losses):
        when = machine.random.randrange(len(step))
        missed += iterate(0, when)
        machine.take(max(1, int(len(machine.resident) * share)))
        missed += iterate(when, len(step))
        missed += iterate(0, when)
        before = session.core.statistics()
        while (
            session.core.statistics().bytes_prefetched - before.bytes_prefetched
        ) // UM_BLOCK_BYTES < DOUBT_SHARE * machine.capacity:
            iterate(0, len(step))
        iterate(0, len(step))
        assert iterate(0, len(step)) == 0
        assert session.believed(step) <= machine.resident
        statistics = session.core.statistics()
        freely = FREE_DOUBTS * machine.capacity * UM_BLOCK_BYTES
        assert statistics.bytes_prefetched_again <= freely + 0.05 * statistics.bytes_prefetched
    assert missed > 0, "the losses did not hurt: the test tests nothing"
    assert machine.violations == []


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("confidence", [30, 4096])
@pytest.mark.parametrize("degree", [4, 32, 2000])
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("queue", [0, 1024])
def test_lost_blocks_come_back(
    queue: int, order: int, degree: int, confidence: int, seed: int
) -> None:
    """With every part of the memory in use: weights that stay, and a sweep that does not fit. The
    iteration has 36 launches, and the program waits at its end.
    """
    step = there_and_back(36, 18)
    step = [
        Launch(launch.execution, (*launch.ranges, *sweep(12, 6, slot=1)[i % 6].ranges))
        for i, launch in enumerate(step)
    ]
    session = Session(
        Stubborn(40, Random(seed)),
        (36, 12),
        eviction_order=order,
        prefetch_degree=degree,
        headroom_blocks=4,
        confidence_launches=confidence,
        launch_queue=queue,
    )
    check_healing(session, step, losses=2, share=0.3)


@pytest.mark.parametrize("queue", [0, CoreSettings.default().launch_queue])
def test_with_the_settings_as_they_come(queue: int) -> None:
    """An iteration of a thousand launches, and a loss."""
    step = [
        Launch(1000 * i + j, (*launch.ranges, *sweep(40, 6, slot=1)[j].ranges))
        for i, launch in enumerate(there_and_back(180, 60))
        for j in range(6)
    ]
    session = Session(Stubborn(190, Random(1)), (180, 40), launch_queue=queue)
    check_healing(session, step, losses=1, share=0.3)
