"""Crossover, mutation and selection: the paper's worked examples, and what all children keep."""

from __future__ import annotations

import numpy as np
import pytest
from dataflow_graphs import figure_1, random_graph

from deepum.planners import Link
from deepum.swapadvisor import Allocation, Engine, Sizes, allocation, schedules
from deepum.swapadvisor.allocation import averaged, monotone
from deepum.swapadvisor.genetic import Individual, survival, survivors

SIZES = Sizes([1, 2, 3, 4] * 8, 12)  # Figure 5, bytes stand for MB
ONE, OTHER = Allocation((1, 1, 1, 1), (4,)), Allocation((1, 2, 2, 2), (8, 1))


def ints(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(numbers, dtype=np.int32)


def test_figure_4_crosses_schedules() -> None:
    one, other = ints(1, 2, 3, 4, 5) - 1, ints(2, 3, 4, 1, 5) - 1
    first, second = schedules.crossed(one, other, 3)
    assert (first + 1).tolist() == [2, 3, 4, 1, 5]
    assert (second + 1).tolist() == [1, 2, 3, 4, 5]


def test_figure_5_crosses_classes_and_counts() -> None:
    assert ONE.expanded == [4, 4, 4, 4] and OTHER.expanded == [8, 1, 1, 1]
    assert monotone([1, 2, 1, 1]) == (1, 2, 2, 2)
    assert averaged((1, 2, 2, 2), [8, 1, 4, 4]) == (8, 3)
    assert SIZES.used_bytes(Allocation((1, 2, 2, 2), (8, 3))) == 20
    assert SIZES.repaired((1, 2, 2, 2), (8, 3)) == Allocation((1, 2, 2, 2), (4, 2))
    first, second = allocation.crossed(SIZES, ONE, OTHER, 2)
    assert first == Allocation((1, 2, 2, 2), (4, 2))
    assert second.classes == (1, 1, 2, 2)
    assert SIZES.class_bytes(second.classes).tolist() == [2, 4]


def test_numbers_without_a_size_are_left_out() -> None:
    assert monotone([1, 1, 3, 4]) == (1, 1, 2, 3)
    assert monotone([1, 2, 3, 1, 2]) == (1, 2, 3, 3, 3)


def test_a_class_mutates_with_all_to_its_right() -> None:
    def classes(parent: tuple[int, ...], flips: list[float]) -> tuple[int, ...]:
        class Drawn:
            """Chances as they are told, then none."""

            def random(self, count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
                return np.array(flips if len(flips) == count else [1.0] * count)

            def normal(self, at: object, _spread: object) -> object:
                return at

        pool = Allocation(parent, (1,) * max(parent))
        made = allocation.mutated(SIZES, pool, 0.5, 0.0, Drawn())  # type: ignore[arg-type]
        return made.classes

    assert classes((1, 1, 1, 1), [1.0, 0.0, 1.0]) == (1, 1, 2, 2)  # one up
    assert classes((1, 2, 2, 3), [0.0, 1.0, 1.0]) == (1, 1, 1, 2)  # one down
    assert classes((1, 2, 2, 3), [0.0, 0.0, 1.0]) == (1, 1, 2, 3)  # both


def test_mutated_pools_fit_and_counts_stay_around_their_parents() -> None:
    random = np.random.default_rng(3)
    parent = Allocation((1, 2, 2, 3), (3, 1, 1))
    drawn = [allocation.mutated(SIZES, parent, 0.4, 0.3, random) for _ in range(400)]
    assert len(set(drawn)) > 15
    for pool in drawn:
        assert SIZES.runs(pool)
        steps = np.diff(pool.classes)
        assert pool.classes[0] == 1 and ((steps == 0) | (steps == 1)).all()
        assert len(pool.counts) == max(pool.classes) and min(pool.counts) >= 1
    kept = [pool.counts[0] for pool in drawn if pool.classes == parent.classes]
    assert 2.0 < float(np.mean(kept)) < 4.0 and min(kept) < 3 < max(kept)
    assert allocation.mutated(SIZES, parent, 0.0, 0.3, random) == parent


def test_a_repair_leaves_what_operators_need() -> None:
    sizes = Sizes.of(figure_1(), 10)
    assert sizes.least((1, 2)).tolist() == [3, 1] and sizes.least((1, 1)).tolist() == [3]
    assert sizes.repaired((1, 2), (8, 4)) == Allocation((1, 2), (8, 1))
    tight = Sizes.of(figure_1(), 4)
    assert not tight.runs(tight.repaired((1, 2), (8, 4)))  # 3 x 1 and 1 x 2 are 5


@pytest.mark.parametrize("seed", range(20))
def test_children_of_schedules_are_schedules(seed: int) -> None:
    graph = random_graph(seed, operators=20)
    engine = Engine(graph, Link(100, 1.0, 1.0))
    one, other = (engine.mutated(graph.program, 1.0, seed * 2 + n) for n in (0, 1))
    assert graph.is_schedule(one) and graph.is_schedule(other)
    for cut in range(21):
        assert all(graph.is_schedule(child) for child in schedules.crossed(one, other, cut))


def test_a_schedule_mutates_by_the_chance() -> None:
    graph = random_graph(4, operators=60)
    engine = Engine(graph, Link(100, 1.0, 1.0))
    parent = engine.mutated(graph.program, 1.0, 9)
    assert engine.mutated(parent, 0.0, 5).tolist() == parent.tolist()
    assert engine.mutated(parent, 0.2, 5).tolist() == engine.mutated(parent, 0.2, 5).tolist()

    def moved(chance: float) -> int:
        children = (engine.mutated(parent, chance, seed) for seed in range(20))
        return sum(int((child != parent).sum()) for child in children)

    assert 0 < moved(0.01) < moved(0.2) < moved(1.0)


def test_survival_is_a_softmax_of_normalized_times() -> None:
    times = [10.0, 15.0, 20.0]
    weights = np.exp([0.0, -0.5, -1.0])
    assert survival(times, 10.0) == pytest.approx(weights / weights.sum())
    # Of individuals seen before, none of which is left, the best counts.
    assert survival([15.0, 20.0], 10.0) == pytest.approx(weights[1:] / weights[1:].sum())
    assert survival(times, 10.0, 0.1)[0] > 0.99


def test_survivors_are_drawn_by_that_and_none_twice() -> None:
    made = [
        Individual(ints(number), ONE, ns)
        for number, ns in enumerate([10.0, 15.0, 20.0, float("inf")])
    ]
    random = np.random.default_rng(1)
    often = [0, 0, 0, 0]
    for _ in range(3000):
        (one,) = survivors(made, 1, 10.0, 1.0, random)
        often[int(one.schedule[0])] += 1
    assert often[3] == 0
    assert np.array(often[:3]) / 3000 == pytest.approx(survival([10.0, 15.0, 20.0], 10.0), abs=0.04)
    for count in (2, 3, 4):
        left = survivors(made, count, 10.0, 1.0, random)
        assert len({int(one.schedule[0]) for one in left}) == len(left) == min(count, 3)
