"""The search: never below the best of all schedules and pools, reproducible, and better than what
it begins with.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from dataflow_graphs import figure_1, random_graph

from deepum.planners import Link
from deepum.simulate.sweep import workers
from deepum.swapadvisor import Allocation, Engine, Graph
from deepum.swapadvisor.genetic import Incumbent, Parameters, search
from deepum.swapadvisor.starts import default, defaults, peaks

SEEDS = range(8)


def orders(graph: Graph) -> Iterator[list[int]]:
    """All schedules."""
    before: dict[int, set[int]] = {number: set() for number in range(len(graph.operators))}
    for first, second in graph.edges:
        before[second].add(first)

    def rest(done: list[int]) -> Iterator[list[int]]:
        if len(done) == len(before):
            yield done
        for number, needed in before.items():
            if number not in done and needed <= set(done):
                yield from rest([*done, number])

    return rest([])


def pools(engine: Engine) -> Iterator[Allocation]:
    """All that fit the memory."""
    sizes = engine.sizes
    for steps in itertools.product((0, 1), repeat=len(sizes.sizes) - 1):
        classes = (1, *(1 + np.cumsum(steps)).tolist())
        ranges = (
            range(least, most + 1)
            for least, most in zip(sizes.least(classes), sizes.most(classes), strict=True)
        )
        for counts in itertools.product(*ranges):
            if sizes.runs(pool := Allocation(classes, tuple(int(count) for count in counts))):
                yield pool


def small(seed: int) -> Engine:
    graph = random_graph(seed, operators=6, parameters=3, sizes=2)
    memory = max(graph.operator_bytes() + 1, int(graph.peak_bytes(graph.program) * 0.7))
    return Engine(graph, Link(memory, 1.0, 1.0))


@cache
def shortest(seed: int) -> float:
    """By trying all."""
    engine = small(seed)
    possible = list(pools(engine))
    times = (
        engine.evaluate(np.array(order, dtype=np.int32), pool).ns
        for order in orders(engine.graph)
        for pool in possible
    )
    return min(times, default=float("inf"))


def last(engine: Engine, parameters: Parameters) -> Incumbent | None:
    return next(reversed(list(search(engine, parameters))), None)


@pytest.mark.parametrize("seed", range(20))
def test_the_leanest_pool_takes_the_fewest_bytes(seed: int) -> None:
    graph = random_graph(seed, operators=10, sizes=6)
    sizes = Engine(graph, Link(10**6, 1.0, 1.0)).sizes
    classes, count = sizes.leanest()
    assert int(sizes.class_bytes(classes) @ sizes.least(classes)) == count
    for steps in itertools.product((0, 1), repeat=len(sizes.sizes) - 1):
        other = (1, *(1 + np.cumsum(steps)).tolist())
        assert int(sizes.class_bytes(other) @ sizes.least(other)) >= count
    for memory, runs in ((count, True), (count - 1, False)):
        assert (default(Engine(graph, Link(memory, 1.0, 1.0))) is not None) == runs


@pytest.mark.parametrize("seed", SEEDS)
def test_no_plan_is_shorter_than_the_best_of_all(seed: int) -> None:
    engine = small(seed)
    found = last(engine, Parameters(generations=3, seconds=100))
    if found is None:
        assert shortest(seed) == float("inf")
        return
    assert engine.graph.is_schedule(found.best.schedule)
    assert engine.sizes.runs(found.best.allocation)
    assert found.best.ns == engine.evaluate(found.best.schedule, found.best.allocation).ns
    assert found.best.ns >= shortest(seed)


def test_the_best_of_most_small_graphs_is_found() -> None:
    best = 0
    for seed in SEEDS:
        found = last(small(seed), Parameters(generations=10, seconds=100))
        best += (found.best.ns if found else float("inf")) == shortest(seed)
    assert best >= len(SEEDS) - 2


def test_incumbents_only_get_better_and_beat_the_default() -> None:
    graph = random_graph(5, operators=60, parameters=16)
    engine = Engine(graph, Link(int(graph.peak_bytes(graph.program) * 0.5), 1.0, 1.0))
    start = default(engine)
    found = list(search(engine, Parameters(generations=20, seconds=100)))
    assert start is not None and len(found) == 21
    times = [one.best.ns for one in found]
    assert times == sorted(times, reverse=True) and times[-1] < start[1].ns
    assert [one.generation for one in found] == list(range(21))


def test_the_same_seed_finds_the_same_by_however_many_workers() -> None:
    graph = random_graph(7, operators=40, parameters=10)
    engine = Engine(graph, Link(int(graph.peak_bytes(graph.program) * 0.6), 1.0, 1.0))
    parameters = Parameters(generations=4, seconds=100, seed=5)
    here = [one.best for one in search(engine, parameters)]
    with workers(2) as executor:
        there = [one.best for one in search(engine, parameters, executor, 2)]
    assert [(one.ns, one.allocation) for one in here] == [(o.ns, o.allocation) for o in there]
    assert all((a.schedule == b.schedule).all() for a, b in zip(here, there, strict=True))
    other = [one.best.ns for one in search(engine, Parameters(generations=4, seconds=100, seed=6))]
    assert other != [one.ns for one in here]


def test_a_dask_cluster_finds_the_same() -> None:
    distributed = pytest.importorskip("distributed", reason="needs Dask (deepum[cluster])")
    graph = random_graph(7, operators=40, parameters=10)
    engine = Engine(graph, Link(int(graph.peak_bytes(graph.program) * 0.6), 1.0, 1.0))
    parameters = Parameters(generations=3, seconds=100, seed=5)
    here = [one.best.ns for one in search(engine, parameters)]
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        workers(2, cluster.scheduler_address) as executor,
    ):
        assert [one.best.ns for one in search(engine, parameters, executor, 2)] == here


def test_time_ends_it() -> None:
    found = list(search(Engine(figure_1(), Link(10, 1.0, 1.0)), Parameters(seconds=0.0)))
    assert [one.generation for one in found] == [0]


def test_without_memory_for_an_operator_nothing_is_found() -> None:
    engine = Engine(figure_1(), Link(3, 1.0, 1.0))
    assert list(search(engine, Parameters(seconds=1.0))) == []
    assert default(engine) is None


def test_default_pools_go_from_fine_to_coarse() -> None:
    graph = figure_1()
    engine = Engine(graph, Link(10, 1.0, 1.0))
    assert peaks(graph, engine.sizes, graph.program) == [8, 2]
    fine, coarse = defaults(engine)
    assert fine == Allocation((1, 2), (6, 2)) and coarse == Allocation((1, 1), (5,))
    start = default(engine)
    assert start is not None and start[0] == fine
