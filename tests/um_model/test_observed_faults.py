"""What a fault source would be told of the model's faults: where, how many, whether any of them
wrote, when.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Make = Callable[..., Any]


def test_a_record_tells_the_block_and_whether_the_access_wrote(make_model: Make) -> None:
    model = make_model(blocks=16)
    model.map(0, 3)
    model.on_cpu(0, 3)
    stream = model.stream()
    model.launch(stream, (0, 1, "r"), (1, 1, "w"), (2, 1, "rw"))
    model.synchronise(stream)
    assert [(block, kind) for block, _, kind, _, _ in model.observed()] == [
        (0, "r"),
        (1, "w"),
        (2, "w"),
    ]


def test_records_add_up_to_the_counted_faults(make_model: Make) -> None:
    model = make_model(blocks=4)
    model.map(0, 8)
    model.on_cpu(0, 8)
    stream = model.stream()
    for _ in range(3):
        model.launch(stream, (0, 8, "rw"))
    model.synchronise(stream)
    seen = model.observed()
    assert sum(faults for _, faults, *_ in seen) == model.counters().faults > 0
    assert {block for block, *_ in seen} == set(range(8))


def test_a_write_that_collapses_a_duplicate_is_a_write_fault(make_model: Make) -> None:
    model = make_model(blocks=16)
    model.map(0, 1)
    model.on_cpu(0, 1)
    model.advise(0, 1, "READ_MOSTLY")
    stream = model.stream()
    model.launch(stream, (0, 1, "r"))
    model.synchronise(stream)
    assert [kind for _, _, kind, _, _ in model.observed()] == ["r"]
    before = model.counters().faults
    model.launch(stream, (0, 1, "r"))
    model.synchronise(stream)
    assert model.observed() == []
    model.launch(stream, (0, 1, "w"))
    model.synchronise(stream)
    assert [(block, faults, kind) for block, faults, kind, _, _ in model.observed()] == [
        (0, 1, "w")
    ]
    assert model.counters().faults == before + 1


def test_the_fault_that_maps_remote_memory_is_told(make_model: Make) -> None:
    model = make_model(blocks=16)
    model.map(0, 1)
    model.on_cpu(0, 1)
    model.advise(0, 1, "PREFERRED_LOCATION", -1)
    stream = model.stream()
    model.launch(stream, (0, 1, "r"))
    model.launch(stream, (0, 1, "w"))
    model.synchronise(stream)
    assert [(block, faults, kind) for block, faults, kind, _, _ in model.observed()] == [
        (0, 1, "r")
    ]


def test_times_are_those_of_the_batches_service(make_model: Make) -> None:
    model = make_model(blocks=16)
    model.map(0, 4)
    model.on_cpu(0, 4)
    stream = model.stream()
    model.launch(stream, (0, 1, "r"))
    model.launch(stream, (1, 3, "r"))
    end = model.synchronise(stream)
    (first, *rest) = model.observed()
    assert 0 < first[3] < first[4]
    assert all(first[4] <= start < stop <= end for _, _, _, start, stop in rest)
    assert len(rest) == 3


def test_prefetched_blocks_are_in_no_record(make_model: Make) -> None:
    model = make_model(blocks=16)
    model.map(0, 4)
    model.on_cpu(0, 4)
    stream = model.stream()
    model.prefetch(stream, 0, 4)
    model.launch(stream, (0, 4, "r"))
    model.synchronise(stream)
    assert model.observed() == []


def test_what_nobody_takes_is_bounded_and_counted(make_model: Make) -> None:
    model = make_model(blocks=1)
    model.map(0, 2)
    model.on_cpu(0, 2)
    stream = model.stream()
    for _ in range(33000):
        model.launch(stream, (0, 1, "r"), (1, 1, "r"))
    model.synchronise(stream)
    kept = len(model.observed())
    assert kept == 1 << 16
    assert model.faults_dropped() == 66000 - kept
    assert model.observed() == []
