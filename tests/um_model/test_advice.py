"""cuMemAdvise and discard, with their documented meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

BLOCK = 2 << 20
CPU = -1
MS = 1e6


def prepared(make_model: Callable[..., Any], blocks: int = 4, **options: Any) -> tuple[Any, int]:
    """A model with content on the CPU in `blocks` blocks, and a stream."""
    model = make_model(**options)
    model.map(0, blocks)
    model.on_cpu(0, blocks)
    return model, model.stream()


def test_read_mostly_duplicates_and_so_leaves_nothing_to_copy_back(
    make_model: Callable[..., Any],
) -> None:
    model, stream = prepared(make_model, blocks=8)
    model.advise(0, 8, "READ_MOSTLY")
    model.prefetch(stream, 0, 4)
    model.launch(stream, (0, 8, "r"))
    model.prefetch(stream, 0, 8, CPU)
    model.cpu_access(0, 8, write=False)
    model.synchronise(stream)
    assert model.resident(range(8)) == list(range(8))
    assert model.counters().bytes_h2d == 8 * BLOCK
    assert model.counters().bytes_d2h == 0


def test_a_prefetch_to_the_cpu_under_read_mostly_cleans_and_keeps_the_device_copy(
    make_model: Callable[..., Any],
) -> None:
    model, stream = prepared(make_model, blocks=4)
    model.launch(stream, (0, 4, "w"))
    model.synchronise(stream)
    model.advise(0, 4, "READ_MOSTLY")
    model.prefetch(stream, 0, 4, CPU)
    model.prefetch(stream, 0, 4, CPU)
    model.synchronise(stream)
    assert model.counters().bytes_d2h == 4 * BLOCK
    assert model.resident(range(4)) == [0, 1, 2, 3]


def test_a_write_collapses_duplicates_at_the_price_of_a_fault(
    make_model: Callable[..., Any],
) -> None:
    model, stream = prepared(make_model, blocks=1)
    model.advise(0, 1, "READ_MOSTLY")
    model.launch(stream, (0, 1, "r"))
    model.synchronise(stream)
    before = model.counters()
    model.launch(stream, (0, 1, "w"))
    model.synchronise(stream)
    after = model.counters()
    assert after.fault_batches - before.fault_batches == 1
    assert after.bytes_h2d == before.bytes_h2d
    model.cpu_access(0, 1, write=False)
    assert model.counters().bytes_d2h == BLOCK  # the CPU's copy was stale


def test_unset_read_mostly_keeps_the_preferred_copy(make_model: Callable[..., Any]) -> None:
    for preferred, resident in ((CPU, []), (0, [0])):
        model, stream = prepared(make_model, blocks=1)
        model.advise(0, 1, "READ_MOSTLY")
        model.launch(stream, (0, 1, "r"))
        model.synchronise(stream)
        model.advise(0, 1, "PREFERRED_LOCATION", preferred)
        model.advise(0, 1, "UNSET_READ_MOSTLY")
        model.spend(MS)
        model.query_stream(stream)
        assert model.resident([0]) == resident
        assert model.counters().bytes_d2h == 0


@pytest.mark.parametrize("mapped", [True, False])
def test_preferred_on_the_cpu_is_accessed_over_the_link(
    make_model: Callable[..., Any], mapped: bool
) -> None:
    model, stream = prepared(make_model, blocks=4)
    model.advise(0, 4, "PREFERRED_LOCATION", CPU)
    if mapped:
        model.advise(0, 4, "ACCESSED_BY", 0)
    for _ in range(2):
        model.launch(stream, (0, 4, "r"))
    model.synchronise(stream)
    counters = model.counters()
    assert model.resident(range(4)) == []
    assert counters.bytes_h2d == 2 * 4 * BLOCK
    assert counters.bytes_demand == 0
    assert counters.faults == (0 if mapped else 4)  # the mapping is made at the first access
    assert counters.stall_ns >= 7 * BLOCK / model.machine.h2d_gbps


def test_accessed_by_does_not_keep_a_first_touch_off_the_device(
    make_model: Callable[..., Any],
) -> None:
    model = make_model()
    stream = model.stream()
    model.map(0, 4)
    model.advise(0, 4, "ACCESSED_BY", 0)
    model.launch(stream, (0, 4, "w"))
    model.synchronise(stream)
    assert model.resident(range(4)) == [0, 1, 2, 3]


def test_a_prefetch_overrides_the_preferred_location(make_model: Callable[..., Any]) -> None:
    model, stream = prepared(make_model, blocks=4)
    model.advise(0, 4, "PREFERRED_LOCATION", CPU)
    model.prefetch(stream, 0, 4)
    model.launch(stream, (0, 4, "r"))
    model.synchronise(stream)
    assert model.resident(range(4)) == [0, 1, 2, 3]
    assert model.counters().faults == 0


def test_unset_advice_brings_migration_back(make_model: Callable[..., Any]) -> None:
    model, stream = prepared(make_model, blocks=4)
    model.advise(0, 4, "PREFERRED_LOCATION", CPU)
    model.advise(0, 4, "ACCESSED_BY", 0)
    model.advise(0, 4, "UNSET_PREFERRED_LOCATION", CPU)
    model.advise(0, 4, "UNSET_ACCESSED_BY", 0)
    model.launch(stream, (0, 4, "r"))
    model.synchronise(stream)
    assert model.resident(range(4)) == [0, 1, 2, 3]


def test_preferred_on_the_device_populates_whole_blocks(make_model: Callable[..., Any]) -> None:
    model = make_model()
    stream = model.stream()
    model.map(0, 1)
    model.advise(0, 1, "PREFERRED_LOCATION", 0)
    model.launch_bytes(stream, (1 << 40, 4096, "w"))
    model.synchronise(stream)
    assert model.regions(0) == 0xFFFFFFFF


def test_advice_holds_from_its_call_on_not_before(make_model: Callable[..., Any]) -> None:
    model, stream = prepared(make_model, blocks=2)
    model.launch(stream, (0, 1, "r"))
    model.spend(MS)
    model.advise(0, 2, "PREFERRED_LOCATION", CPU)
    model.launch(stream, (1, 1, "r"))
    model.synchronise(stream)
    assert model.resident([0, 1]) == [0]


def test_discard_and_prefetch_to_the_cpu_frees_space_without_a_copy(
    make_model: Callable[..., Any],
) -> None:
    model = make_model(blocks=4)
    stream = model.stream()
    model.map(0, 8)
    model.launch(stream, (0, 4, "w"))
    model.discard(stream, 0, 2, then=CPU)
    model.synchronise(stream)
    counters = model.counters()
    assert counters.bytes_discarded == 2 * BLOCK
    assert counters.bytes_d2h == 0
    assert model.free_bytes() == 2 * BLOCK
    model.launch(stream, (0, 2, "w"))
    model.launch(stream, (0, 2, "r"))
    model.synchronise(stream)
    assert model.counters().bytes_h2d == 0  # there was nothing to bring back
    assert model.counters().discarded_uses == 0


@pytest.mark.parametrize(("then", "copied"), [(CPU, 2), (None, 0)])
def test_nvidias_driver_makes_pages_on_the_host_for_what_is_discarded_and_prefetched_there(
    make_model: Callable[..., Any], then: int | None, copied: int
) -> None:
    """They are copied like all others when the block comes to the device again. A discard alone
    makes none.
    """
    model = make_model(blocks=4, discards=1)
    stream = model.stream()
    model.map(0, 8)
    model.launch(stream, (0, 4, "w"))
    model.discard(stream, 0, 2, then=then)
    model.launch(stream, (4, 2, "w"))  # takes their space
    model.prefetch(stream, 0, 2)
    model.launch(stream, (0, 2, "w"))
    model.synchronise(stream)
    assert model.counters().bytes_h2d == copied * BLOCK
    assert model.counters().bytes_discarded == 2 * BLOCK
    assert model.counters().discarded_uses == 0


def test_the_drivers_handling_of_a_block_is_paid_for_whatever_a_prefetch_or_a_discard_does_with_it(
    make_model: Callable[..., Any],
) -> None:
    def took(handling: float) -> list[float]:
        model = make_model(blocks=8, block_ns=handling)
        stream = model.stream()
        model.map(0, 16)
        model.on_cpu(0, 4)
        times = []
        for act in (
            lambda: model.prefetch(stream, 0, 4),  # copied
            lambda: model.prefetch(stream, 4, 4),  # populated
            lambda: model.prefetch(stream, 0, 2, CPU),
            lambda: model.discard(stream, 2, 2),
            lambda: model.discard(stream, 4, 2, then=CPU),
        ):
            times.append(model.elapsed(stream, act))
        return times

    free, paid = took(0.0), took(20e3)
    assert [round((b - a) / 20e3) for a, b in zip(free, paid, strict=True)] == [4, 4, 2, 2, 2]


def test_directions_slow_each_other_down_where_they_share_something(
    make_model: Callable[..., Any],
) -> None:
    def took(factor: float, both: bool) -> float:
        model = make_model(blocks=16, both_ways=factor)
        into, out = model.stream(), model.stream()
        model.map(0, 16)
        model.on_cpu(0, 8)
        model.launch(out, (8, 8, "w"))
        model.synchronise(out)
        if both:
            model.prefetch(out, 8, 8, CPU)
        return float(model.elapsed(into, lambda: model.prefetch(into, 0, 8)))

    assert took(1.25, False) == pytest.approx(took(1.0, False))
    assert took(1.25, True) > 1.15 * took(1.0, True)


def test_discard_and_prefetch_to_the_device_populates_without_a_copy(
    make_model: Callable[..., Any],
) -> None:
    model, stream = prepared(make_model, blocks=4)
    model.discard(stream, 0, 4, then=0)
    model.launch(stream, (0, 4, "w"))
    model.synchronise(stream)
    assert model.counters().bytes_h2d == 0
    assert model.counters().faults == 0
    assert model.counters().discarded_uses == 0


@pytest.mark.parametrize("then", [None, CPU, 0])
def test_reading_what_was_discarded_is_an_error_of_the_program(
    make_model: Callable[..., Any], then: int | None
) -> None:
    model = make_model()
    stream = model.stream()
    model.map(0, 4)
    model.launch(stream, (0, 4, "w"))
    model.discard(stream, 0, 2, then=then)
    model.launch(stream, (2, 2, "r"))
    model.synchronise(stream)
    assert model.violations() == 0
    model.launch(stream, (1, 2, "r"))
    model.synchronise(stream)
    assert model.violations() == 1
    assert model.counters().discarded_uses == 1


def test_a_write_ends_a_discard(make_model: Callable[..., Any]) -> None:
    model = make_model(blocks=4)
    stream = model.stream()
    model.map(0, 8)
    model.launch(stream, (0, 4, "w"))
    model.discard(stream, 0, 4)
    model.launch(stream, (0, 4, "w"))
    model.launch(stream, (0, 4, "r"))
    model.launch(stream, (4, 4, "w"))
    model.synchronise(stream)
    assert model.violations() == 0
    assert model.counters().bytes_d2h == 4 * BLOCK  # evicted with a copy: it has content again


def test_a_discard_takes_whole_regions_only(make_model: Callable[..., Any]) -> None:
    from deepum._core import ffi, lib

    model = make_model()
    stream = model.stream()
    model.map(0, 1)
    model.launch(stream, (0, 1, "w"))
    part = ffi.new("deepum_model_range[]", [((1 << 40) + 100, 3 * 65536)])
    assert lib.deepum_model_discard(model.native, 0, stream, part, 1, CPU, 1) == 0
    model.synchronise(stream)
    assert model.counters().bytes_discarded == 2 * 65536
    assert model.regions(0) == 0xFFFFFFFF & ~0b1111  # what was not whole was moved
    assert model.counters().bytes_d2h == 2 * 65536
