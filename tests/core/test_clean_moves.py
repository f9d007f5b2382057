"""Clean copies carried out: in lock-step, once it is learned what writes, nothing is missed, no
write faults, and drops copy nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from duplicating_machine import DuplicatingMachine, LookingSession
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import Launch, sweep, there_and_back

ADVISE_ALL = 3
BLOCKS, LAUNCHES = 24, 12


def learn(session: LookingSession, step: Sequence[Launch], times: int, look: int) -> int:
    """Iterations, with a look after so many launches; write faults of the last one."""
    found = 0
    for _ in range(times):
        found = 0
        for i, launch in enumerate(step):
            session.launch(launch)
            if i % look == look - 1:
                found += session.look()
        session.wait()
    return found + session.look()


def training() -> tuple[list[Launch], set[int]]:
    """Forward, backward, and an update that writes: the step, and its writers."""
    update = [Launch(launch.execution + 9000, launch.ranges) for launch in sweep(BLOCKS, LAUNCHES)]
    return [*there_and_back(BLOCKS, LAUNCHES), *update], {launch.execution for launch in update}


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("capacity", [10, 16, 22])
def test_a_training_step_is_learned(capacity: int, order: int) -> None:
    step, writers = training()
    session = LookingSession(
        DuplicatingMachine(capacity, Random(0), writers=writers),
        (BLOCKS,),
        advice=ADVISE_ALL,
        eviction_order=order,
    )
    machine = session.machine
    learn(session, step, 8, look=8)
    before = machine.late, machine.faults
    assert learn(session, step, 3, look=8) == 0
    assert (machine.late, machine.faults) == before
    assert machine.violations == []
    assert session.core.statistics().bytes_dropped > 0
    assert session.believed(step) <= machine.resident


@settings(max_examples=20, deadline=None)
@given(
    capacity=st.integers(8, 22),
    order=st.integers(0, 2),
    write=st.sets(st.integers(0, 2 * LAUNCHES - 1)),
    look=st.sampled_from((1, 7, 2 * LAUNCHES)),
    seed=st.integers(0, 1 << 20),
)
def test_whatever_writes_moves_go_right(
    capacity: int, order: int, write: set[int], look: int, seed: int
) -> None:
    step = there_and_back(BLOCKS, LAUNCHES)
    machine = DuplicatingMachine(capacity, Random(seed), writers={step[i].execution for i in write})
    session = LookingSession(machine, (BLOCKS,), advice=ADVISE_ALL, eviction_order=order)
    learn(session, step, 12, look)
    missed = machine.faults
    learn(session, step, 2, look)
    assert machine.faults == missed
    assert machine.violations == []
    assert not any(machine.waiting.values())
