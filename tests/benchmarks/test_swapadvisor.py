"""What benchmarks/swapadvisor.py makes of its results."""

from __future__ import annotations

import pytest


@pytest.mark.usefixtures("benchmarks")
def test_means_are_of_what_all_ways_can_run() -> None:
    from swapadvisor import FRACTIONS, WAYS, table

    def point(default: float | None) -> dict[str, object]:
        found = {"memory_bytes": 1 << 30} | dict.fromkeys(WAYS, 20.0) | {"default": default}
        return {"unlimited_ms": 10.0, "parts": dict.fromkeys(FRACTIONS, found)}

    lines = table({"points": {"resnet152@m": point(40.0), "b@m": point(None)}}).splitlines()
    count = len(FRACTIONS)
    assert lines[2] == "| `resnet152@m` | 1, 1.0 GiB | 25.0% | 50.0% | 50.0% | 50.0% |"
    assert [line for line in lines if line.count("[t]") and line.startswith("| `")] == [
        "| `resnet152@m` | 1/2, 1.0 GiB [t] | 25.0% | 50.0% | 50.0% | 50.0% |"
    ]
    assert lines[2 + count].split(" | ")[2] == "-"
    assert lines[2 + 2 * count] == "| geometric mean, 1 | 1 | 25.0% | 50.0% | 50.0% | 50.0% |"


@pytest.mark.usefixtures("benchmarks")
def test_a_small_graph_is_measured_in_every_way() -> None:
    from swapadvisor import WAYS, at

    from deepum.planners import Event, Item, Iteration, Link
    from deepum.swapadvisor.traced import graph_of

    launches = 24
    items = [
        Item(4 << 20, (Event(n, writes=True), Event(launches - 1 - n, reads=True)))
        for n in range(launches // 2)
    ]
    graph = graph_of(Iteration((1e6,) * launches, tuple(items)))
    link = Link(graph.peak_bytes(graph.program) // 2, 12.0, 12.0)
    found = at(graph, link, 2, 0.5)
    assert all(found[way] >= graph.compute_ns / 1e6 * (1 - 1e-9) for way in WAYS)
    assert found["swapadvisor"] <= found["default"]
