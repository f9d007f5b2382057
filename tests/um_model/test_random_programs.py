"""Any program ends, never holds more than memory, conserves bytes, and runs alike twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deepum._core import ffi
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

BLOCK = 2 << 20
CPU = -1
MAPPED = 24
ADVICE = [
    "READ_MOSTLY",
    "UNSET_READ_MOSTLY",
    "PREFERRED_LOCATION",
    "UNSET_PREFERRED_LOCATION",
    "ACCESSED_BY",
    "UNSET_ACCESSED_BY",
]

first = st.integers(0, MAPPED - 1)
count = st.integers(1, MAPPED)
where = st.sampled_from([CPU, 0, 1])
moves = st.one_of(
    st.tuples(
        st.just("launch"),
        first,
        count,
        st.sampled_from(["r", "w", "rw"]),
        st.integers(0, 2_000_000),
    ),
    st.tuples(st.just("prefetch"), first, count, where, st.booleans()),
    st.tuples(st.just("spend"), st.integers(0, 5_000_000)),
    st.tuples(st.just("query")),
    st.tuples(st.just("fence")),
)
operation = st.one_of(
    moves,
    st.tuples(st.just("discard"), first, count, st.sampled_from([None, CPU, 0])),
    st.tuples(st.just("advise"), first, count, st.sampled_from(ADVICE), where),
    st.tuples(st.just("copy"), first, count, st.sampled_from(["H2D", "D2H", "D2D"])),
    st.tuples(st.just("fill"), first, count),
    st.tuples(st.just("cpu"), first, count, st.booleans()),
    st.tuples(st.just("device memory"), st.integers(1, 6)),
    st.tuples(st.just("pin")),
    st.tuples(st.just("remap")),
    st.tuples(st.just("synchronise")),
)
program = st.lists(st.tuples(st.integers(0, 3), operation), max_size=40)


def check_host(model: Any) -> None:
    """What the host has is in its memory or on the disk, nothing else is, and its memory is never
    over its size.
    """
    size = model.machine.host_memory_bytes
    if size == 0:
        return
    found = [model.content(block) for block in range(MAPPED)]
    for one in found:
        assert one.in_host_memory | one.on_disk == one.on_host | one.leaving
        assert one.on_device & (one.arriving | one.leaving) == 0
    held = 65536 * sum(one.in_host_memory.bit_count() for one in found)
    assert 0 <= model.counters().host_bytes - held <= 2 * BLOCK, "the rest is pinned"
    if model.machine.disk_read_gbps:
        assert model.counters().peak_host_bytes <= size
        assert model.counters().bytes_disk_read == 0 or model.counters().bytes_disk_written > 0


def run(model: Any, steps: list[tuple[int, Any]], capacity: int) -> tuple[float, bytes]:
    streams = [model.stream(0), model.stream(0), model.stream(1), model.stream(0)]
    helper, event = model.helper(), model.event()
    device_memory = pinned = False
    for number, (what, *details) in steps:
        stream = streams[number]
        start, blocks = (
            (details[0], min(details[1], MAPPED - details[0])) if len(details) > 1 else (0, 0)
        )
        if what == "launch":
            model.program_call()
            model.launch(stream, (start, blocks, details[2]), (0, 2, "r"), ns=details[3])
        elif what == "prefetch":
            model.prefetch(stream, start, blocks, details[2], host=helper if details[3] else 0)
        elif what == "discard":
            model.discard(stream, start, blocks, then=details[2])
        elif what == "advise":
            model.advise(start, blocks, details[2], details[3])
        elif what == "copy":
            model.copy(stream, start, blocks, details[2])
        elif what == "fill":
            model.fill(stream, start, blocks)
        elif what == "cpu":
            model.cpu_access(start, blocks, write=details[2])
        elif what == "spend":
            model.spend(details[0])
        elif what == "query":
            model.query_stream(stream)
        elif what == "fence":
            model.record(event, stream)
            model.wait(streams[(number + 1) % 4], event)
        elif what == "device memory":
            if device_memory:
                model.unmap(1000)
            else:
                model.map_device(1000, details[0])
            device_memory = not device_memory
        elif what == "pin":
            if pinned:
                assert model.unpin(2)
                pinned = False
            else:
                pinned = model.machine.host_memory_bytes != 0 and model.pin(2)
        elif what == "remap":
            model.unmap(0)
            model.map(0, MAPPED)
        else:
            model.synchronise(stream)
        for device in (0, 1):
            assert (
                model.counters(device).resident_bytes + model.free_bytes(device) <= capacity * BLOCK
            )
            assert model.counters(device).peak_resident_bytes <= capacity * BLOCK
        check_host(model)
    for device in (0, 1):
        model.synchronise_device(device)
    for stream in streams:
        assert model.query_stream(stream)
    return model.now(), bytes(ffi.buffer(model.counters()))


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    steps=program,
    capacity=st.integers(1, 30),
    density=st.booleans(),
    seed=st.sampled_from([0, 0, 5]),
)
def test_any_program(
    make_model: Callable[..., Any],
    steps: list[tuple[int, Any]],
    capacity: int,
    density: bool,
    seed: int,
) -> None:
    options = {
        "blocks": capacity,
        "devices": 2,
        "density": density,
        "seed": seed,
        "launch_queue": 4,
    }
    model, again = make_model(**options), make_model(**options)
    model.map(0, MAPPED)
    again.map(0, MAPPED)
    assert run(model, steps, capacity) == run(again, steps, capacity)
    for device in (0, 1):
        c = model.counters(device)
        # What stays is what came or was made there, less what left: it can be no more than what the
        # device holds.
        assert c.resident_bytes <= capacity * BLOCK
        assert c.bytes_demand + c.bytes_prefetched <= c.bytes_h2d
        assert c.bytes_driver_evicted + c.bytes_prefetched_out <= c.bytes_d2h
        assert c.bytes_prefetched_used <= c.bytes_prefetched
        assert c.bytes_missing <= c.bytes_accessed
        assert c.faults >= c.fault_batches
        assert 0 <= c.compute_ns <= c.gpu_time_ns + 1, "one kernel at a time"
        assert 0 <= c.stall_ns <= c.gpu_time_ns + 1
        assert c.gpu_time_ns <= model.now() + 1
    assert all(model.regions(block, 0) & model.regions(block, 1) == 0 for block in range(MAPPED)), (
        "on one device at most"
    )


DISK = {
    "disk_read_gbps": 3.2,
    "disk_write_gbps": 2.0,
    "disk_read_latency_ns": 12e3,
    "disk_write_latency_ns": 16e3,
}


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    steps=program,
    capacity=st.integers(1, 30),
    host=st.integers(2, 30),
    buffer=st.integers(0, 8),
    keeps=st.booleans(),
)
@example(
    # What is to be pinned needs the place of a block that is on its way to the host.
    steps=[
        (0, (what, *details))
        for what, *details in (
            ("pin",),
            ("fill", 0, 1),
            ("pin",),
            ("synchronise",),
            ("prefetch", 0, 1, -1, False),
            ("query",),
            ("pin",),
        )
    ],
    capacity=1,
    host=2,
    buffer=0,
    keeps=False,
)
def test_any_program_on_a_host_with_a_disk(
    make_model: Callable[..., Any],
    steps: list[tuple[int, Any]],
    capacity: int,
    host: int,
    buffer: int,
    keeps: bool,
) -> None:
    figures = {
        "host_memory_bytes": host * BLOCK,
        "disk_buffer_bytes": buffer * BLOCK,
        "host_keeps": keeps,
        **DISK,
    }
    model, again = (
        make_model(blocks=capacity, devices=2, launch_queue=4, **figures) for _ in range(2)
    )
    model.map(0, MAPPED)
    again.map(0, MAPPED)
    assert run(model, steps, capacity) == run(again, steps, capacity)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=program, capacity=st.integers(1, 30), disk=st.booleans())
def test_a_host_that_is_large_enough_changes_nothing(
    make_model: Callable[..., Any], steps: list[tuple[int, Any]], capacity: int, disk: bool
) -> None:
    plain = make_model(blocks=capacity, devices=2, launch_queue=4)
    sized = make_model(
        blocks=capacity,
        devices=2,
        launch_queue=4,
        host_memory_bytes=(MAPPED + 2) * BLOCK,
        **(DISK if disk else {}),
    )
    for model in (plain, sized):
        model.map(0, MAPPED)
    (ended, _), (sized_ended, _) = run(plain, steps, capacity), run(sized, steps, capacity)
    assert ended == sized_ended
    assert sized.counters().peak_host_bytes <= (MAPPED + 2) * BLOCK
    assert all(
        getattr(plain.counters(), name) == getattr(sized.counters(), name)
        for name, _ in ffi.typeof("deepum_model_counters").fields
        if name not in ("host_bytes", "peak_host_bytes")
    )


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    steps=st.lists(st.tuples(st.integers(0, 3), moves), max_size=40), capacity=st.integers(1, 30)
)
def test_bytes_are_conserved_without_advice_and_discard(
    make_model: Callable[..., Any], steps: list[tuple[int, Any]], capacity: int
) -> None:
    """All blocks begin on the CPU and are nowhere twice: what came to the devices and did not leave
    is what they hold.
    """
    model = make_model(blocks=capacity, devices=2)
    model.map(0, MAPPED)
    model.on_cpu(0, MAPPED)
    run(model, steps, capacity)
    c = model.counters()
    on_devices = 65536 * sum(
        model.regions(block, device).bit_count() for block in range(MAPPED) for device in (0, 1)
    )
    assert c.bytes_h2d - c.bytes_d2h == on_devices
    assert c.bytes_h2d == c.bytes_demand + c.bytes_prefetched
