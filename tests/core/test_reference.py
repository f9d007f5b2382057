"""The native core decides what the plain-Python one decides."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import caching_step, event_programs, long_steps, there_and_back, write, write_program
from reference import Reference

from deepum.core import UM_BLOCK_BYTES, BlockRange, Core, CoreSettings, EventWriter, events

SETTINGS = st.builds(
    CoreSettings.default,
    policy=st.sampled_from((0, 1, 1, 1)),
    eviction_order=st.integers(0, 2),
    prediction=st.integers(0, 1),
    prefetch_degree=st.sampled_from((1, 4, 32, 2000)),
    execution_ids=st.sampled_from((16, 65536)),
    execution_records=st.sampled_from((1, 2, 16)),
    chain_steps=st.sampled_from((1, 3, 8)),
    headroom_blocks=st.sampled_from((0, 2, 16)),
    pre_eviction=st.sampled_from((0, 1, 1)),
    confidence_launches=st.sampled_from((3, 20, 4096)),
    block_table_ways=st.just(64),
    launch_queue=st.sampled_from((0, 1024)),
    advice=st.integers(0, 3),
    writes=st.integers(0, 1),
    invalidation=st.integers(0, 1),
)


def compare(core_settings: CoreSettings, records: bytes) -> None:
    core, reference = Core(core_settings), Reference(core_settings)
    core.process(records)
    for event in events(records):
        reference.process(event)
    assert core.take_commands() == reference.commands
    assert core.wants_faults == reference.wants_faults
    assert core.wants_reads == reference.wants_reads
    assert core.wants_free_memory == reference.wants_free_memory
    devices = reference.devices.in_use()
    withdrawn = sum(device.residency.withdrawn for device in devices)
    assert core.statistics().capacity_withdrawn_bytes == withdrawn * UM_BLOCK_BYTES
    assert core.statistics().iterations == reference.detector.iterations
    assert core.statistics().iteration_launches == reference.detector.period
    assert core.statistics().window_mistakes == sum(device.window.mistakes for device in devices)
    for slot, allocation in reference.memory.allocations.items():
        for block in allocation.blocks:
            expected = Core.RESIDENT * block.resident | Core.POPULATED * block.populated
            expected |= Core.FAULTED * block.faulted | Core.WRITTEN * block.write_faulted
            assert core.block_state(slot, block.index) == expected, (slot, block)


@settings(
    max_examples=250,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(SETTINGS, event_programs())
def test_random_programs(core_settings: CoreSettings, program: list[Any]) -> None:
    compare(core_settings, write_program(program, EventWriter()))


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(SETTINGS, st.integers(2, 3), st.sampled_from((0, 1024)), event_programs(steady=True))
def test_steady_programs(
    core_settings: CoreSettings, advice: int, launch_queue: int, program: list[Any]
) -> None:
    """Those in which blocks are duplicated, copied out, dropped, written and collapsed."""
    core_settings = replace(
        core_settings, policy=1, pre_eviction=1, advice=advice, launch_queue=launch_queue
    )
    compare(core_settings, write_program(program, EventWriter()))


@settings(max_examples=60, deadline=None)
@given(SETTINGS, st.integers(3, 24), st.lists(st.integers(0, 5), max_size=3))
def test_training_loops(core_settings: CoreSettings, capacity: int, extra: list[int]) -> None:
    writer = EventWriter()
    writer.device(capacity)
    writer.allocate(0, 24)
    writer.allocate(1, 6)
    step = there_and_back(24, 8)
    records = b""
    for number in range(8):
        writer.synchronise()
        records += write(writer, step)
        if number in extra:  # a launch that does not belong
            records += write(writer, [replace(step[number], execution=99)])
    compare(core_settings, records)


@settings(max_examples=60, deadline=None)
@given(
    SETTINGS,
    st.integers(6, 24),
    st.lists(st.permutations(range(7)), min_size=3, max_size=8),
    st.integers(1, 3),
)
def test_tensors_that_move(
    core_settings: CoreSettings, capacity: int, steps: list[list[int]], blocks: int
) -> None:
    writer = EventWriter()
    writer.device(capacity)
    writer.allocate(0, 21)
    writer.allocate(1, 6)
    for places in steps:
        caching_step(writer, places, blocks)
        writer.execute(1, [BlockRange(1, 0, 6)])
        writer.synchronise()
    compare(core_settings, writer.take())


@settings(max_examples=25, deadline=None)
@given(
    SETTINGS,
    st.sampled_from((96, 512, 600)),
    st.integers(4, 6),
    st.integers(0, 1 << 32),
    st.booleans(),
)
def test_by_next_use_on_larger_cards(
    core_settings: CoreSettings, capacity: int, steps: int, seed: int, vary: bool
) -> None:
    """Where blocks have to rest for as long as anywhere. Launches of tensors that vary are new each
    time.
    """
    writer = EventWriter()
    long_steps(writer, Random(seed), capacity, steps, vary)
    compare(
        replace(core_settings, policy=1, eviction_order=2, prefetch_degree=2000, pre_eviction=1),
        writer.take(),
    )
