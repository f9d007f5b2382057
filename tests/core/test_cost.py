"""What the core costs: counted in operations (links of the chain, blocks looked at), never in time;
and the memory of its tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from programs import Launch, there_and_back, write

from deepum.core import Core, CoreSettings, EventWriter

CHAIN_STEPS = CoreSettings.default().chain_steps
BLOCKS = 4  # that a launch uses
LOOKS = 8  # over the whole chain, while it passes
RESTED = 32  # blocks that may be looked at in vain for one that may go
AHEAD = CHAIN_STEPS * 5 * BLOCKS  # what is placed ahead for a launch
# A batch of evictions for what the launch needs, and one for the headroom.
MOST = AHEAD + 2 * 8 * RESTED
INSERTED = 8  # launches nobody foresaw that do not end the chain
FURTHEST_NEXT_USE = 2


class Meter:
    """A core that counts its operations launch by launch; one allocation. The program waits after
    each launch, or never; then the core is told that the driver does not let it run ahead.
    """

    def __init__(self, capacity: int, blocks: int, waits: bool = False, **changes: int) -> None:
        self.waits = waits
        changes = changes if waits else {"launch_queue": 0, **changes}
        self.core, self.writer = Core(CoreSettings.default(**changes)), EventWriter()
        self.writer.device(capacity)
        self.writer.allocate(0, blocks)
        self.core.process(self.writer.take())

    def learn(self, step: Sequence[Launch], times: int = 6) -> None:
        for launch in list(step) * times:
            self.core.process(self.records(launch))
        self.core.take_command_bytes()

    def records(self, launch: Launch) -> bytes:
        """With the wait, if there is one."""
        records = write(self.writer, [launch])
        if self.waits:
            self.writer.synchronise()
        return records + self.writer.take()

    def operations(self, launches: Iterable[Launch]) -> list[int]:
        """Of each launch."""
        counted = []
        for launch in launches:
            before = self.core.statistics().operations
            self.core.process(self.records(launch))
            counted.append(self.core.statistics().operations - before)
        return counted


def mean(counts: Sequence[int]) -> float:
    return sum(counts) / len(counts)


def steady(degree: int, capacity: int, launches: int, waits: bool, order: int) -> list[int]:
    """The operations of the launches of a step that was learned; forward and backward over 4 x
    `launches` blocks.
    """
    step = there_and_back(BLOCKS * launches, launches)
    meter = Meter(capacity, BLOCKS * launches, waits, prefetch_degree=degree, eviction_order=order)
    meter.learn(step)
    counted = meter.operations(step)
    statistics = meter.core.statistics()
    assert statistics.bytes_evicted > 0
    assert statistics.predictions_right > 0.8 * statistics.predictions
    return counted


@pytest.mark.parametrize("order", [0, 1, FURTHEST_NEXT_USE])
@pytest.mark.parametrize("waits", [False, True])
def test_a_long_chain_costs_no_more_than_a_short_one(waits: bool, order: int) -> None:
    """The 2000 launches ahead fit memory, most of the time: 1000 of the blocks that a step uses do
    not, at either of its ends.
    """
    near, far = (
        steady(degree, capacity=9000, launches=2500, waits=waits, order=order)
        for degree in (32, 2000)
    )
    assert mean(far) <= 1.6 * mean(near)
    # What a wait gives time for is placed at once; the whole chain is looked over now and then.
    if not waits:
        assert sum(count > AHEAD for count in far) <= len(far) / (2000 / LOOKS) + 1


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("order", [0, 1, FURTHEST_NEXT_USE])
@pytest.mark.parametrize("capacity", [700, 1500, 3000])
def test_a_chain_that_memory_holds_up_costs_little_more(
    capacity: int, order: int, waits: bool
) -> None:
    """The 2000 launches ahead need more than there is: at each launch the chain tries again where
    it stands.
    """
    near, far = (
        steady(degree, capacity, launches=1000, waits=waits, order=order) for degree in (32, 2000)
    )
    assert mean(far) <= 2 * mean(near) + 8 * RESTED
    if not waits:
        assert sum(count > MOST for count in far) <= len(far) / 20


@pytest.mark.parametrize("order", [0, 1, FURTHEST_NEXT_USE])
@pytest.mark.parametrize("when", [3, 700, 1500])
def test_a_restart_is_spread_over_the_launches_that_follow(when: int, order: int) -> None:
    step = there_and_back(4000, 1000)
    meter = Meter(3000, 4000, prefetch_degree=2000, eviction_order=order)
    meter.learn(step)
    restarts = meter.core.statistics().chain_restarts
    surprises = [replace(step[0], execution=90_000 + i) for i in range(INSERTED + 1)]
    meter.core.process(write(meter.writer, [*step[:when], *surprises]))
    assert meter.core.statistics().chain_restarts == restarts + 1
    counted = meter.operations([*step[when:], *step])
    assert sum(count > MOST for count in counted) <= len(counted) / 20
    assert mean(counted[-1000:]) < 8 * RESTED


def test_room_that_comes_after_a_stall_is_taken_in_small_steps() -> None:
    step = there_and_back(4000, 1000)
    meter = Meter(700, 4000, prefetch_degree=2000)
    meter.learn(step)
    before = meter.core.statistics()
    assert before.window_stalls > 1000
    meter.writer.capacity(3900)
    counted = meter.operations(step)
    assert sum(count > MOST for count in counted) <= len(counted) / 20
    after = meter.core.statistics()
    assert after.resident_bytes > 3 * before.resident_bytes, "the room was not used"


def test_what_a_wait_places_is_paid_once() -> None:
    """After a long wait all that was learned may be placed: once, not at each wait."""
    step = there_and_back(4000, 1000)
    meter = Meter(3000, 4000, launch_queue=CoreSettings.default().launch_queue)
    meter.learn(step)
    waits = []
    for _ in range(4):
        before = meter.core.statistics().operations
        meter.writer.synchronise()
        meter.core.process(meter.writer.take())
        waits.append(meter.core.statistics().operations - before)
    assert waits[0] > 1000
    assert max(waits[1:]) <= 20 * BLOCKS


def test_launches_that_need_nothing_cost_next_to_nothing() -> None:
    step = there_and_back(400, 100)
    meter = Meter(500, 400)
    meter.learn(step, 30)
    # One link of the chain; the launch's own blocks, and those placed at the chain's end.
    # A look over the chain included.
    assert max(meter.operations(step)) <= 1 + 4 * BLOCKS + 2 * len(step)
