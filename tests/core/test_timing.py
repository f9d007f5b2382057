"""The timing rule: an eviction waits for its victim's last use, a prefetch for the space it takes,
a block's move for its move before.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mover import Machine
from programs import Launch, there_and_back, write

from deepum.core import Core, CoreSettings, EventWriter, Execute, events


def run(core: Core, machine: Machine, records: bytes, patient: bool, queue: int) -> None:
    """Launch by launch, with at most `queue` launches that have not run."""
    at = 0
    for event in events(records):
        words = int.from_bytes(records[at : at + 2], "little")
        core.process(records[at : at + words * 8])
        at += words * 8
        commands = core.take_commands()
        if isinstance(event, Execute):
            machine.launch(event, commands)
            while len(machine.launched) > queue:
                machine.advance(1 << 30 if patient else machine.random.randrange(4))
                machine.run_launch()
    machine.settle(patient)


def start(capacity: int, sizes: tuple[int, ...], **changes: int) -> tuple[Core, EventWriter]:
    core, writer = Core(CoreSettings.default(**{"launch_queue": 0, **changes})), EventWriter()
    writer.device(capacity)
    for slot, size in enumerate(sizes):
        writer.allocate(slot, size)
    core.process(writer.take())
    return core, writer


@settings(max_examples=80, deadline=None)
@given(
    capacity=st.integers(10, 30),
    order=st.integers(0, 1),
    degree=st.sampled_from((4, 32, 2000)),
    headroom=st.sampled_from((0, 2, 16)),
    streams=st.booleans(),
    queue=st.sampled_from((0, 3, 40)),
    seed=st.integers(0, 1 << 20),
)
def test_no_move_starts_too_early(
    capacity: int, order: int, degree: int, headroom: int, streams: bool, queue: int, seed: int
) -> None:
    """Any speed of the link: prefetches find their space free, evictions come after the last use.
    Launches wait for no move.
    """
    core, writer = start(
        capacity, (24, 8), eviction_order=order, prefetch_degree=degree, headroom_blocks=headroom
    )
    random = Random(seed)
    machine = Machine(capacity, random)
    step = [
        Launch(launch.execution, launch.ranges, random.randrange(3) if streams else 0)
        for launch in there_and_back(24, 8)
    ]
    # Launches that run before their blocks came take what space there is: the machine is patient,
    # so that only the core can be at fault.
    run(core, machine, write(writer, step * 6), patient=True, queue=queue)
    assert machine.violations == []
    assert not any(machine.waiting.values()), "moves that wait for each other"


@settings(max_examples=60, deadline=None)
@given(
    capacity=st.integers(10, 30),
    order=st.integers(0, 1),
    queue=st.sampled_from((0, 5, 40)),
    seed=st.integers(0, 1 << 20),
)
def test_every_command_is_carried_out_in_the_end(
    capacity: int, order: int, queue: int, seed: int
) -> None:
    """Whatever the order of moves and launches, with programs that deviate: no two commands wait
    for each other.
    """
    random = Random(seed)
    core, writer = start(capacity, (24, 8), eviction_order=order)
    machine = Machine(capacity, random)
    step = there_and_back(24, 8)
    launches = [launch for _ in range(8) for launch in step if random.random() < 0.95]
    run(core, machine, write(writer, launches), patient=False, queue=queue)
    assert [v for v in machine.violations if "space" not in v] == []
    assert not any(machine.waiting.values())


@pytest.mark.parametrize("order", [0, 1])
def test_a_repeated_step_needs_no_faults(order: int) -> None:
    core, writer = start(28, (24, 8), eviction_order=order, headroom_blocks=2)
    machine = Machine(28, Random(0))
    step = there_and_back(24, 8)
    step += [
        Launch(9, tuple(step[0].ranges)),
        *(Launch(launch.execution + 5000, launch.ranges) for launch in _other(8)),
    ]
    for _ in range(4):
        run(core, machine, write(writer, step), patient=True, queue=100)
    before = machine.faults
    for _ in range(4):
        run(core, machine, write(writer, step), patient=True, queue=100)
    assert machine.faults == before
    assert core.statistics().bytes_evicted > 0


def _other(blocks: int) -> list[Launch]:
    return [
        Launch(launch.execution, tuple(type(r)(1, r.first, r.count) for r in launch.ranges))
        for launch in there_and_back(blocks, 4)
    ]
