"""What is where: faults, the density prefetcher, the driver's eviction order, prefetches."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

BLOCK = 2 << 20
REGION = 64 << 10
BASE = 1 << 40
CPU = -1
MS = 1e6


def density_reference(present: int, wanted: int) -> tuple[int, int]:
    """uvm_perf_prefetch.c in plain Python: (regions that come, faults) for an ascending sweep over
    `wanted`.
    """
    before, faults = present, 0
    for region in range(32):
        if not wanted >> region & 1 or present >> region & 1:
            continue
        faults += 1
        present |= 1 << region
        grown = 1 << region
        for level in range(1, 6):
            size = 1 << level
            subtree = ((1 << size) - 1) << (region // size * size)
            if (present & subtree).bit_count() / size > 0.51:
                grown = subtree
        present |= grown
    return present & ~before, faults


def test_the_density_prefetcher_agrees_with_its_reference(make_model: Callable[..., Any]) -> None:
    generator = random.Random(1)
    for _ in range(200):
        model = make_model()
        stream = model.stream()
        model.map(0, 1)
        model.on_cpu(0, 1)
        present = faults = 0
        for _ in range(3):
            first = generator.randrange(32)
            count = generator.randrange(1, 33 - first)
            model.launch_bytes(stream, (BASE + first * REGION, count * REGION, "r"))
            model.synchronise(stream)
            come, missed = density_reference(present, ((1 << count) - 1) << first)
            present |= come
            faults += missed
            assert model.regions(0) == present
            assert model.counters().faults == faults


def test_without_the_density_prefetcher_only_what_is_touched_comes(
    make_model: Callable[..., Any],
) -> None:
    model = make_model(density=False)
    stream = model.stream()
    model.map(0, 1)
    model.on_cpu(0, 1)
    model.launch_bytes(stream, (BASE + 3 * REGION + 5, REGION, "r"))
    model.synchronise(stream)
    assert model.regions(0) == 0b11000
    assert model.counters().faults == 2


def test_one_batch_holds_at_most_256_faults(make_model: Callable[..., Any]) -> None:
    model = make_model(density=False)
    stream = model.stream()
    model.map(0, 24)
    model.on_cpu(0, 24)
    model.launch(stream, (0, 24, "r"))
    model.synchronise(stream)
    assert model.counters().faults == 24 * 32
    assert model.counters().fault_batches == 24 * 32 // 256
    assert model.faults() == [(block, 32) for block in range(24)]
    assert model.faults() == []


def test_a_first_touch_populates_without_a_transfer(make_model: Callable[..., Any]) -> None:
    model = make_model()
    stream = model.stream()
    model.map(0, 16)
    model.launch(stream, (0, 16, "w"))
    model.synchronise(stream)
    counters = model.counters()
    assert counters.faults > 0
    assert counters.bytes_h2d == 0
    assert counters.stall_ns == pytest.approx(counters.fault_batches * model.machine.fault_batch_ns)
    model.prefetch(stream, 0, 16, CPU)
    model.synchronise(stream)
    assert model.counters().bytes_d2h == 16 * BLOCK  # it has content now


def test_the_driver_evicts_the_least_recently_migrated_not_the_least_recently_used(
    make_model: Callable[..., Any],
) -> None:
    model = make_model(blocks=4)
    stream = model.stream()
    model.map(0, 8)
    for block in range(4):
        model.launch(stream, (block, 1, "w"))
    for _ in range(3):
        model.launch(stream, (0, 1, "rw"))  # used most, and last
    model.launch(stream, (4, 1, "w"))
    model.synchronise(stream)
    assert model.resident(range(8)) == [1, 2, 3, 4]


def test_a_prefetch_of_what_is_there_makes_it_the_newest(make_model: Callable[..., Any]) -> None:
    model = make_model(blocks=4)
    stream = model.stream()
    model.map(0, 8)
    model.launch(stream, (0, 4, "w"))
    model.prefetch(stream, 0, 1)
    model.launch(stream, (4, 1, "w"))
    model.synchronise(stream)
    assert model.counters().bytes_prefetched == 0
    assert model.resident(range(8)) == [0, 2, 3, 4]


def test_discarded_blocks_are_evicted_first_and_not_copied(make_model: Callable[..., Any]) -> None:
    model = make_model(blocks=4)
    stream = model.stream()
    model.map(0, 8)
    model.launch(stream, (0, 4, "w"))
    model.discard(stream, 2, 1)
    model.launch(stream, (4, 1, "w"))
    model.synchronise(stream)
    assert model.resident(range(8)) == [0, 1, 3, 4]
    assert model.counters().bytes_d2h == 0
    assert model.counters().bytes_discarded == BLOCK


def test_a_kernel_larger_than_memory_streams_through(make_model: Callable[..., Any]) -> None:
    for blocks in (1, 2, 7):
        model = make_model(blocks=blocks)
        stream = model.stream()
        model.map(0, 40)
        model.on_cpu(0, 40)
        model.launch(stream, (0, 40, "rw"), (0, 40, "rw"))
        model.synchronise(stream)
        counters = model.counters()
        assert counters.kernels == 1
        assert counters.peak_resident_bytes <= blocks * BLOCK
        assert counters.bytes_demand >= 2 * (40 - blocks) * BLOCK
        assert counters.bytes_accessed == 40 * BLOCK  # blocks count once a launch


def test_with_no_room_for_managed_memory_a_kernel_works_over_the_link(
    make_model: Callable[..., Any],
) -> None:
    model = make_model(blocks=4)
    stream = model.stream()
    model.map(0, 8)
    model.map_device(100, 4)
    model.on_cpu(0, 8)
    model.prefetch(stream, 0, 8)
    model.launch(stream, (0, 8, "r"))
    model.synchronise(stream)
    assert model.counters().resident_bytes == 0
    assert model.counters().bytes_h2d == 8 * BLOCK
    assert model.free_bytes() == 0


def test_device_memory_pushes_managed_memory_out_and_gives_the_space_back(
    make_model: Callable[..., Any],
) -> None:
    model = make_model(blocks=8)
    stream = model.stream()
    model.map(0, 8)
    model.launch(stream, (0, 8, "w"))
    model.synchronise(stream)
    assert model.free_bytes() == 0
    model.map_device(100, 3)
    assert model.counters().resident_bytes == 5 * BLOCK
    assert model.counters().bytes_driver_evicted == 3 * BLOCK
    model.launch(stream, (100, 3, "rw"), (3, 5, "r"))
    model.synchronise(stream)
    assert model.counters().faults == 8 * 6
    model.unmap(100)
    assert model.free_bytes() == 3 * BLOCK


def test_freed_memory_leaves_its_space_and_its_content(make_model: Callable[..., Any]) -> None:
    model = make_model(blocks=8)
    stream = model.stream()
    model.map(0, 8)
    model.launch(stream, (0, 8, "w"))
    model.synchronise(stream)
    model.unmap(0)
    assert model.counters().resident_bytes == 0
    assert model.counters().managed_bytes == 0
    assert model.counters().peak_managed_bytes == 8 * BLOCK
    model.map(0, 8)
    model.launch(stream, (0, 8, "r"))
    model.synchronise(stream)
    assert model.counters().bytes_h2d == 0


def test_a_kernel_waits_for_a_block_in_flight_instead_of_faulting(
    make_model: Callable[..., Any],
) -> None:
    model = make_model()
    compute, mover = model.stream(), model.stream()
    model.map(0, 64)
    model.on_cpu(0, 64)
    model.prefetch(mover, 0, 64)
    model.launch(compute, (63, 1, "r"))
    model.synchronise(compute)
    counters = model.counters()
    assert counters.faults == 0
    assert counters.bytes_missing == BLOCK
    assert counters.stall_ns > 60 * BLOCK / model.machine.h2d_gbps
    model.synchronise(mover)
    assert model.counters().bytes_prefetched_used == BLOCK


def test_a_kernel_waits_for_a_block_that_leaves_and_brings_it_back(
    make_model: Callable[..., Any],
) -> None:
    model = make_model()
    compute, mover = model.stream(), model.stream()
    model.map(0, 1)
    model.launch(compute, (0, 1, "w"))
    begun = model.synchronise(compute)
    model.prefetch(mover, 0, 1, CPU)
    model.spend(0.5 * BLOCK / model.machine.d2h_gbps)
    model.launch(compute, (0, 1, "r"))
    model.synchronise(compute)
    assert model.counters().bytes_prefetched_out == BLOCK
    assert model.counters().bytes_demand == BLOCK
    assert model.now() - begun > BLOCK / model.machine.d2h_gbps + model.machine.fault_batch_ns


def test_prefetches_move_only_what_is_not_there(make_model: Callable[..., Any]) -> None:
    model = make_model()
    stream = model.stream()
    model.map(0, 8)
    model.on_cpu(0, 4)  # the other four have no content
    model.prefetch(stream, 0, 8)
    model.prefetch(stream, 0, 8)
    model.synchronise(stream)
    assert model.resident(range(8)) == list(range(8))
    assert model.counters().bytes_prefetched == model.counters().bytes_h2d == 4 * BLOCK
    model.prefetch(stream, 0, 4, CPU)
    model.prefetch(stream, 0, 4, CPU)
    model.synchronise(stream)
    assert model.counters().bytes_prefetched_out == model.counters().bytes_d2h == 4 * BLOCK
    assert model.counters().resident_bytes == 4 * BLOCK


def test_a_prefetch_into_full_memory_evicts_as_the_driver_does(
    make_model: Callable[..., Any],
) -> None:
    model = make_model(blocks=4)
    stream = model.stream()
    model.map(0, 8)
    model.on_cpu(4, 4)
    model.launch(stream, (0, 4, "w"))
    ns = model.elapsed(stream, lambda: model.prefetch(stream, 4, 2))
    assert model.resident(range(8)) == [2, 3, 4, 5]
    assert ns >= 2 * (model.machine.eviction_ns_per_block + BLOCK / model.machine.h2d_gbps)


def test_prefetched_bytes_count_as_used_once_and_only_if_used(
    make_model: Callable[..., Any],
) -> None:
    model = make_model()
    stream = model.stream()
    model.map(0, 8)
    model.on_cpu(0, 8)
    model.prefetch(stream, 0, 8)
    model.launch(stream, (0, 3, "r"))
    model.launch(stream, (0, 3, "r"))
    model.launch_bytes(stream, (BASE + 5 * BLOCK, REGION, "r"))
    model.prefetch(stream, 0, 8, CPU)
    model.launch(stream, (0, 8, "r"))
    model.synchronise(stream)
    assert model.counters().bytes_prefetched_used == 3 * BLOCK + REGION


def test_the_cpu_gets_its_data_back(make_model: Callable[..., Any]) -> None:
    model = make_model()
    stream = model.stream()
    model.map(0, 4)
    model.launch(stream, (0, 4, "w"))
    model.synchronise(stream)
    before = model.now()
    model.cpu_access(0, 2, write=False)
    assert model.resident(range(4)) == [2, 3]
    assert model.counters().bytes_d2h == 2 * BLOCK
    assert model.now() - before >= 2 * BLOCK / model.machine.d2h_gbps


def test_a_copy_or_a_fill_touches_managed_memory_on_the_device(
    make_model: Callable[..., Any],
) -> None:
    model = make_model()
    stream = model.stream()
    model.map(0, 8)
    model.copy(stream, 0, 4, "H2D")
    model.fill(stream, 4, 4)
    model.synchronise(stream)
    assert model.resident(range(8)) == list(range(8))
    assert model.counters().bytes_h2d == 4 * BLOCK
    assert model.counters().copies == 2
    assert model.counters().kernels == 0
    model.copy(stream, 0, 8, "D2H")
    model.synchronise(stream)
    assert model.resident(range(8)) == list(range(8))
    assert model.counters().bytes_d2h == 8 * BLOCK


def test_random_evictions_happen_only_when_asked_for_and_alike_for_one_seed(
    make_model: Callable[..., Any],
) -> None:
    def run(seed: int) -> tuple[int, float]:
        model = make_model(seed=seed)
        stream = model.stream()
        model.map(0, 64)
        for _ in range(200):
            model.launch(stream, (0, 64, "rw"))
        end = model.synchronise(stream)
        return model.counters().bytes_driver_evicted, end

    assert run(0)[0] == 0
    assert run(7)[0] > 0
    assert run(7) == run(7) != run(8)


def test_blocks_of_another_device_come_by_way_of_the_host(make_model: Callable[..., Any]) -> None:
    model = make_model(devices=2, blocks=8)
    first, second = model.stream(0), model.stream(1)
    model.map(0, 4)
    model.launch(first, (0, 4, "w"))
    model.synchronise(first)
    model.launch(second, (0, 4, "rw"))
    model.synchronise(second)
    assert model.resident(range(4), device=0) == []
    assert model.resident(range(4), device=1) == [0, 1, 2, 3]
    assert model.counters(0).bytes_d2h == model.counters(1).bytes_h2d == 4 * BLOCK
    assert model.counters(0).resident_bytes == 0
