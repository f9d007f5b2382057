"""A stream stands still while a server acts for it: so advice, which has no place in a stream, gets
one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from deepum._core import lib

BLOCK = 2 << 20
CPU = -1
SERVER = 1  # the host that acts while a stream stands still
MS = 1e6
SERVED_NS, CALL_NS = 20_000, 5_000


def prepared(make_model: Callable[..., Any], blocks: int = 4) -> tuple[Any, int]:
    """A model with content on the CPU in `blocks` blocks, and a stream."""
    model = make_model(host_function_ns=SERVED_NS, migration_call_ns=CALL_NS)
    model.map(0, blocks)
    model.on_cpu(0, blocks)
    return model, model.stream()


def test_the_stream_stands_still_as_long_as_the_server_takes(
    make_model: Callable[..., Any],
) -> None:
    model, stream = prepared(make_model)
    alone = model.elapsed(stream, lambda: None)
    assert model.elapsed(
        stream, lambda: model.serve_advice(stream, 0, 4, "READ_MOSTLY")
    ) == pytest.approx(alone + SERVED_NS + CALL_NS)


def test_the_program_does_not_wait_for_it(make_model: Callable[..., Any]) -> None:
    model, stream = prepared(make_model)
    model.launch(stream, ns=8 * MS)
    before = model.now()
    model.serve_advice(stream, 0, 4, "READ_MOSTLY")
    assert model.now() == before
    assert model.synchronise(stream) == pytest.approx(model.now(SERVER), abs=1)
    assert model.now(SERVER) >= 8 * MS + SERVED_NS + CALL_NS


@pytest.mark.parametrize("served", [True, False])
def test_what_was_queued_before_is_not_touched_by_it(
    make_model: Callable[..., Any], served: bool
) -> None:
    """A read that comes before READ_MOSTLY takes the block away from the CPU."""
    model, stream = prepared(make_model)
    model.launch(stream, ns=8 * MS)
    model.launch(stream, (0, 4, "r"))
    if served:
        model.serve_advice(stream, 0, 4, "READ_MOSTLY")
    else:
        model.advise(0, 4, "READ_MOSTLY")
    model.synchronise(stream)
    model.cpu_access(0, 4, write=False)
    assert model.counters().bytes_d2h == (4 * BLOCK if served else 0)


def test_what_was_queued_behind_it_finds_it_done(make_model: Callable[..., Any]) -> None:
    model, stream = prepared(make_model)
    model.launch(stream, (0, 4, "w"))
    model.serve_advice(stream, 0, 4, "READ_MOSTLY")
    model.prefetch(stream, 0, 4, CPU)
    model.launch(stream, (0, 4, "r"))
    model.synchronise(stream)
    model.cpu_access(0, 4, write=False)
    counters = model.counters()
    assert model.resident(range(4)) == [0, 1, 2, 3]
    assert (counters.bytes_d2h, counters.bytes_h2d) == (4 * BLOCK, 4 * BLOCK), (
        "the write fetched it; it was copied out once"
    )


def test_duplicates_leave_without_a_copy_where_the_cpu_is_preferred_for_a_moment(
    make_model: Callable[..., Any],
) -> None:
    model, stream = prepared(make_model)
    model.advise(0, 4, "READ_MOSTLY")
    model.prefetch(stream, 0, 4)
    for advice in ("PREFERRED_LOCATION", "UNSET_READ_MOSTLY", "UNSET_PREFERRED_LOCATION"):
        model.serve_advice(stream, 0, 4, advice, CPU)
    model.prefetch(stream, 0, 4, CPU)
    model.synchronise(stream)
    assert model.resident(range(4)) == []
    assert model.counters().bytes_d2h == 0


def test_one_stream_is_served_after_the_other(make_model: Callable[..., Any]) -> None:
    model, first = prepared(make_model)
    second = model.stream()
    ends = [model.event(), model.event()]
    for stream, end in zip((first, second), ends, strict=True):
        model.serve_advice(stream, 0, 4, "READ_MOSTLY")
        model.record(end, stream)
    model.synchronise_device()
    times = sorted(model.time(end) for end in ends)
    assert times[1] - times[0] >= CALL_NS


def test_what_is_no_advice_is_refused(make_model: Callable[..., Any]) -> None:
    model, stream = prepared(make_model)
    assert (
        lib.deepum_model_serve_advice(model.native, 0, stream, model._ranges(0, 4), 1, 6, 0) == -1
    )
    assert (
        lib.deepum_model_serve_advice(model.native, 0, stream + 1, model._ranges(0, 4), 1, 0, 0)
        == -1
    )
    assert (
        lib.deepum_model_serve_advice(model.native, 0, stream, model._ranges(0, 4), 1, 0, 7) == -1
    )
