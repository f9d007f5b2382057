"""Order and time: streams, events, hosts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

BLOCK = 2 << 20
CPU = -1
MS = 1e6


def test_a_stream_runs_in_order_and_two_streams_share_the_compute_engine(
    make_model: Callable[..., Any],
) -> None:
    model = make_model()
    a, b = model.stream(), model.stream()
    events = [model.event() for _ in range(4)]
    for event, stream in zip(events, [a, a, b, b], strict=True):
        model.launch(stream, ns=5 * MS)
        model.record(event, stream)
    model.synchronise_device()
    first_a, second_a, first_b, second_b = (model.time(event) for event in events)
    assert first_a < second_a
    assert first_b < second_b
    assert max(second_a, second_b) >= 20 * MS  # one kernel at a time


def test_a_wait_holds_a_stream_until_the_event(make_model: Callable[..., Any]) -> None:
    model = make_model()
    a, b = model.stream(), model.stream()
    gate, done = model.event(), model.event()
    model.map(0, 1)
    model.launch(a, ns=8 * MS)
    model.record(gate, a)
    model.wait(b, gate)
    model.prefetch(b, 0, 1)
    model.record(done, b)
    model.synchronise(b)
    assert model.time(done) >= model.time(gate) >= 8 * MS


def test_a_wait_is_for_the_recording_that_was_latest_when_it_was_queued(
    make_model: Callable[..., Any],
) -> None:
    model = make_model()
    a, b = model.stream(), model.stream()
    event, done = model.event(), model.event()
    model.record(event, a)
    model.wait(b, event)
    model.record(done, b)
    model.launch(a, ns=8 * MS)
    model.record(event, a)
    model.synchronise_device()
    assert model.time(done) < MS < model.time(event)


def test_a_wait_for_an_event_never_recorded_does_nothing(make_model: Callable[..., Any]) -> None:
    model = make_model()
    stream = model.stream()
    event = model.event()
    assert math.isnan(model.time(event))
    assert model.query(event)
    model.wait(stream, event)
    model.synchronise(stream)
    assert model.query_stream(stream)


def test_a_query_never_runs_past_the_hosts_clock(make_model: Callable[..., Any]) -> None:
    model = make_model()
    stream = model.stream()
    event = model.event()
    model.launch(stream, ns=3 * MS)
    model.record(event, stream)
    assert not model.query(event)
    assert math.isnan(model.time(event))
    model.spend(2 * MS)
    assert not model.query(event)
    assert not model.query_stream(stream)
    model.spend(2 * MS)
    assert model.query(event)
    assert model.query_stream(stream)
    assert model.time(event) == pytest.approx(3 * MS + model.machine.launch_ns)


def test_what_is_queued_while_a_kernel_runs_is_seen_by_it(make_model: Callable[..., Any]) -> None:
    """A query in the middle of a kernel must not have decided what its later accesses find."""
    model = make_model()
    compute, mover = model.stream(), model.stream()
    model.map(0, 10)
    model.on_cpu(0, 10)
    model.prefetch(compute, 0, 5)
    model.synchronise(compute)
    model.launch(compute, (0, 10, "r"), ns=10 * MS)
    model.spend(1 * MS)
    assert not model.query_stream(compute)
    model.prefetch(mover, 5, 5)
    model.synchronise_device()
    assert model.counters().faults == 0
    assert model.counters().bytes_prefetched_used == 10 * BLOCK


def test_a_blocking_call_takes_the_clock_along(make_model: Callable[..., Any]) -> None:
    model = make_model()
    stream = model.stream()
    model.launch(stream, ns=3 * MS)
    assert model.now() < MS
    assert model.synchronise(stream) == pytest.approx(3 * MS + model.machine.launch_ns)


def test_the_launch_queue_holds_the_host_back(make_model: Callable[..., Any]) -> None:
    model = make_model(launch_queue=16)
    stream = model.stream()
    for _ in range(16):
        model.launch(stream, ns=MS)
    assert model.now() == pytest.approx(16 * model.machine.launch_ns)
    for _ in range(4):
        model.launch(stream, ns=MS)
    assert 4 * MS <= model.now() < 5 * MS


def test_a_helper_acts_no_earlier_than_the_decision_could_be_made(
    make_model: Callable[..., Any],
) -> None:
    model = make_model()
    compute, mover = model.stream(), model.stream()
    helper = model.helper()
    moved = model.event()
    model.map(0, 1)
    model.on_cpu(0, 1)
    model.launch(compute, ns=MS)
    model.synchronise(compute)
    model.program_call()
    called = model.now()
    model.prefetch(mover, 0, 1, host=helper)
    model.record(moved, mover, host=helper)
    model.synchronise(mover, host=helper)
    transfer = BLOCK / model.machine.h2d_gbps
    assert model.time(moved) >= called + model.machine.decision_latency_ns + transfer
    assert model.now() == called  # the helper's time is its own


def test_both_directions_of_the_link_work_at_once(make_model: Callable[..., Any]) -> None:
    model = make_model(blocks=512)
    up, down = model.stream(), model.stream()
    model.map(0, 256)
    model.on_cpu(0, 256)
    model.prefetch(down, 0, 128)
    model.synchronise(down)
    alone = model.elapsed(down, lambda: model.prefetch(down, 0, 128, CPU))
    model.prefetch(down, 0, 128)
    begun = model.synchronise(down)
    model.prefetch(up, 128, 128)
    model.prefetch(down, 0, 128, CPU)
    assert model.synchronise_device() - begun < 1.1 * alone


def test_transfers_of_one_direction_share_the_link(make_model: Callable[..., Any]) -> None:
    model = make_model()
    a, b = model.stream(), model.stream()
    model.map(0, 256)
    model.on_cpu(0, 256)
    begun = model.now()
    model.prefetch(a, 0, 128)
    model.prefetch(b, 128, 128)
    assert model.synchronise_device() - begun >= 256 * BLOCK / model.machine.h2d_gbps


def test_faults_take_their_share_of_the_link_from_prefetches(
    make_model: Callable[..., Any],
) -> None:
    model = make_model()
    compute, mover = model.stream(), model.stream()
    model.map(0, 256)
    model.on_cpu(0, 256)
    begun = model.now()
    model.launch(compute, (128, 128, "r"))
    model.prefetch(mover, 0, 128)
    assert model.synchronise_device() - begun >= 256 * BLOCK / model.machine.h2d_gbps


def test_streams_and_events_can_be_removed_with_work_queued(make_model: Callable[..., Any]) -> None:
    from deepum._core import lib

    model = make_model()
    kept = model.stream()
    for _ in range(100):
        stream, event = model.stream(), model.event()
        model.launch(stream, ns=1e4)
        model.record(event, stream)
        model.wait(kept, event)
        lib.deepum_model_remove_event(model.native, event)
        lib.deepum_model_remove_stream(model.native, stream)
    model.synchronise(kept)
    assert model.counters().kernels == 100


def test_numbers_out_of_range_are_refused(make_model: Callable[..., Any]) -> None:
    from deepum._core import ffi, lib

    model = make_model()
    assert lib.deepum_model_launch(model.native, 0, 5, ffi.NULL, 0, 0.0, 0, 0, 0.0, 0) == -1
    assert lib.deepum_model_record(model.native, 3, 0, 0) == -1
    assert lib.deepum_model_map_managed(model.native, 1 << 40, BLOCK, 7) == -1
    assert lib.deepum_model_map_managed(model.native, 1 << 40, 0, 0) == -1
    assert lib.deepum_model_create(b"no such machine", ffi.NULL) == ffi.NULL
