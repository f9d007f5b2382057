"""The model gives back the measurements it was built from, within 15 %: Titan V behind PCIe 3.0
x16, nvidia-uvm (uvm-eval).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from deepum._core import ffi, lib

BLOCK = 2 << 20
WITHIN = 0.15


def stall(model: Any, stream: int, first: int, blocks: int) -> float:
    before = model.counters().stall_ns
    model.launch(stream, (first, blocks, "r"))
    model.synchronise(stream)
    return float(model.counters().stall_ns - before)


@pytest.mark.parametrize(("density", "base_us", "us_per_kb"), [(True, 70, 0.21), (False, 40, 1.24)])
def test_a_fault_batch_costs_what_was_measured(
    make_model: Callable[..., Any], density: bool, base_us: float, us_per_kb: float
) -> None:
    for blocks in (1, 2, 4, 8):
        model = make_model(density=density)
        stream = model.stream()
        model.map(0, blocks)
        model.on_cpu(0, blocks)
        cost = stall(model, stream, 0, blocks)
        assert model.counters().fault_batches == 1
        assert cost / 1e3 == pytest.approx(base_us + us_per_kb * blocks * 2048, rel=WITHIN)


def test_an_eviction_inside_a_batch_costs_185_us_per_block(make_model: Callable[..., Any]) -> None:
    model = make_model(blocks=8)
    stream = model.stream()
    model.map(0, 16)
    model.on_cpu(0, 16)
    into_free_memory = stall(model, stream, 0, 8)
    into_full_memory = stall(model, stream, 8, 8)
    assert model.counters().bytes_driver_evicted == 8 * BLOCK
    assert (into_full_memory - into_free_memory) / 8 / 1e3 == pytest.approx(185, rel=WITHIN)


@pytest.mark.parametrize("location", [0, -1])
def test_bulk_transfers_reach_12_9_gb_per_second_each_way(
    make_model: Callable[..., Any], location: int
) -> None:
    model = make_model()
    stream = model.stream()
    model.map(0, 512)
    model.on_cpu(0, 512)
    if location == -1:
        model.prefetch(stream, 0, 512)
    ns = model.elapsed(stream, lambda: model.prefetch(stream, 0, 512, location))
    assert 512 * BLOCK / ns == pytest.approx(12.9, rel=WITHIN)
    ns = model.elapsed(
        stream, lambda: model.copy(stream, 0, 512, "D2H" if location == -1 else "H2D")
    )
    # A copy to the host of what is there already is the host's; into resident memory it is the
    # link's.
    assert 512 * BLOCK / ns == pytest.approx(
        12.9 if location == 0 else model.machine.host_gbps, rel=WITHIN
    )


def test_on_demand_access_reaches_0_9_gb_per_second(make_model: Callable[..., Any]) -> None:
    """8.4 GB on demand; the published figure does not say whether the prefetcher was on, but only
    off can be so slow.
    """
    model = make_model(density=False)
    stream = model.stream()
    blocks = 8_400_000_000 // BLOCK
    model.map(0, blocks)
    model.on_cpu(0, blocks)
    assert blocks * BLOCK / stall(model, stream, 0, blocks) == pytest.approx(0.9, rel=WITHIN)


def test_on_g10s_machine_paging_is_as_fast_as_in_its_simulator(
    make_model: Callable[..., Any],
) -> None:
    """Base UVM, BERT, batch 256: 45385726 pages of 4 KiB each way while kernels wait for 19.650 -
    7.285 s in an iteration.
    """
    model = make_model("a100-40gb-g10", blocks=256)
    stream = model.stream()
    model.map(0, 1024)
    model.launch(stream, (0, 1024, "w"))
    model.synchronise(stream)
    before = model.counters()
    waited = stall(model, stream, 0, 1024)
    after = model.counters()
    assert after.bytes_h2d - before.bytes_h2d == after.bytes_d2h - before.bytes_d2h == 1024 * BLOCK
    assert 1024 * BLOCK / waited == pytest.approx(
        45385726 * 4096 / (19.650 - 7.285) / 1e9, rel=WITHIN
    )


def test_prefetching_beats_on_demand_access_at_least_twice(make_model: Callable[..., Any]) -> None:
    model = make_model()
    stream = model.stream()
    model.map(0, 512)
    model.on_cpu(0, 512)
    faulting = stall(model, stream, 0, 256)
    moved = model.elapsed(stream, lambda: model.prefetch(stream, 256, 256))
    assert faulting > 2 * moved


def test_a_kernel_takes_the_longest_of_arithmetic_memory_and_its_minimum(
    make_model: Callable[..., Any],
) -> None:
    model = make_model()
    stream = model.stream()
    model.map(0, 64)
    model.launch(stream, (0, 64, "w"))

    def compute(*accesses: tuple[int, int, str], ns: float = 0) -> float:
        model.synchronise(stream)
        before = model.counters().compute_ns
        model.launch(stream, *accesses, ns=ns)
        model.synchronise(stream)
        return float(model.counters().compute_ns - before)

    rate = model.machine.memory_gbps * model.machine.memory_sustained
    assert compute((0, 64, "r")) == pytest.approx(64 * BLOCK / rate)
    assert compute((0, 64, "rw")) == pytest.approx(2 * 64 * BLOCK / rate)
    assert compute((0, 64, "r"), ns=7e6) == pytest.approx(7e6)
    assert compute() == pytest.approx(model.machine.min_kernel_ns)


def arithmetic(
    model: Any,
    stream: int,
    gflop: float,
    matrix_units: bool = False,
    fraction: float = 0.0,
    tiles: int = 0,
) -> float:
    """Compute time of a kernel that touches nothing, in ns."""
    before = model.counters().compute_ns
    assert (
        lib.deepum_model_launch(
            model.native, 0, stream, ffi.NULL, 0, gflop * 1e9, matrix_units, 0, fraction, tiles
        )
        == 0
    )
    model.synchronise(stream)
    return float(model.counters().compute_ns - before)


@pytest.mark.parametrize(("matrix_units", "tflops"), [(False, 13), (True, 101)])
def test_arithmetic_reaches_what_large_products_were_measured_at(
    make_model: Callable[..., Any], matrix_units: bool, tflops: float
) -> None:
    """V100: FP32 13 TFLOP/s with PyTorch (device-benchmarks), FP16 101 with cuBLAS (NVIDIA
    developer forum 79781).
    """
    model = make_model()
    ns = arithmetic(model, model.stream(), 1000, matrix_units)
    assert 1e9 / ns == pytest.approx(tflops, rel=WITHIN)


def test_a_kind_of_kernel_reaches_its_own_fraction_of_the_peak_but_never_more_than_the_best(
    make_model: Callable[..., Any],
) -> None:
    model = make_model()
    stream = model.stream()
    assert arithmetic(model, stream, 100, fraction=0.4) == pytest.approx(
        100e9 / (0.4 * model.machine.fp32_gflops)
    )
    assert arithmetic(model, stream, 100, fraction=1.0) == pytest.approx(
        arithmetic(model, stream, 100)
    )
    assert lib.deepum_model_launch(model.native, 0, stream, ffi.NULL, 0, 1e9, 0, 0, 1.5, 0) == -1


def test_tiles_run_in_waves_over_the_multiprocessors(make_model: Callable[..., Any]) -> None:
    """One tile more than multiprocessors takes twice as long: NVIDIA, "Matrix Multiplication
    Background User's Guide", 3.2.
    """
    model = make_model()
    stream, wave = model.stream(), model.machine.multiprocessors
    full = arithmetic(model, stream, wave, tiles=wave)
    assert full == pytest.approx(arithmetic(model, stream, wave))
    assert arithmetic(model, stream, wave + 1, tiles=wave + 1) == pytest.approx(2 * full)
    assert arithmetic(model, stream, 1, tiles=1) == pytest.approx(full)
