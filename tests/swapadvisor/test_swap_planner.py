"""The swap planner and the engine: the paper's examples, and random graphs against a plain engine
and what a plan has to keep.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from dataflow_graphs import CONCAT, LEFT_FIRST, RIGHT_FIRST, figure_1, makes, random_graph, reads
from plain_engine import check, run

from deepum.planners import Link
from deepum.swapadvisor import Allocation, Engine, Graph, Operator, SwapPlan, Tensor, Use
from deepum.swapadvisor.engine import Kind
from deepum.swapadvisor.starts import default, random_allocation

SEEDS = range(40)
COARSE, FINE = Allocation((1, 1), (5,)), Allocation((1, 2), (8, 1))


def planned(graph: Graph, schedule: list[int], pool: Allocation, memory: int) -> SwapPlan:
    engine = Engine(graph, Link(memory, 1.0, 1.0))
    plan = engine.plan(np.array(schedule, dtype=np.int32), pool, passes=1)
    assert plan is not None
    return plan


@pytest.mark.parametrize(
    ("schedule", "pool", "units"),
    [(RIGHT_FIRST, COARSE, 7), (RIGHT_FIRST, FINE, 6), (LEFT_FIRST, FINE, 7)],
    ids=["(c)", "(d)", "(e)"],
)
def test_figure_1(schedule: list[int], pool: Allocation, units: int) -> None:
    plan = planned(figure_1(), schedule, pool, 10)
    assert plan.runs[schedule.index(CONCAT)].end_ns == units


def test_figure_1_c_waits_for_w1() -> None:
    plan = planned(figure_1(), RIGHT_FIRST, COARSE, 10)
    (w1,) = [m for m in plan.moves if m.kind is Kind.IN and m.tensor == 6 and m.position == 4]
    assert (w1.start_ns, w1.end_ns) == (4.0, 5.0)  # in slot t5, where W4 was
    assert w1.after_moves == ()  # which needs no copy
    (a2,) = [m for m in plan.moves if m.kind is Kind.OUT and m.tensor == 2]
    assert (a2.start_ns, a2.end_ns) == (3.0, 5.0)


def test_figure_3_swaps_in_as_soon_as_the_victim_is_used() -> None:
    weight, made = Tensor(1, True, True), Tensor(1)
    graph = Graph(
        (
            Operator("op1", 1, reads(0) + makes(3)),
            Operator("op2", 1, reads(1, 3) + makes(4)),
            Operator("op3", 1, reads(2, 4) + makes(5)),
            Operator("op4", 1, reads(3, 5)),
        ),
        (weight, weight, weight, made, made, made),
    )
    plan = planned(graph, [0, 1, 2, 3], Allocation((1,), (4,)), 4)
    by_tensor = {move.tensor: move for move in plan.moves if move.kind is not Kind.HELD}
    assert by_tensor[2].object == by_tensor[0].object  # W1 -> W3
    assert by_tensor[5].object == by_tensor[1].object  # W2 -> A3
    assert by_tensor[2].after_operator == 0
    assert by_tensor[2].start_ns == plan.runs[0].end_ns
    assert not [move for move in plan.moves if move.kind is Kind.OUT]


def test_what_was_changed_is_copied_and_comes_back() -> None:
    changed, weight = Tensor(2, True, True), Tensor(2, True, True)
    graph = Graph(
        (
            Operator("change", 1, (Use(0, True, True),)),
            Operator("other", 1, reads(1)),
            Operator("read", 1, reads(0)),
        ),
        (changed, weight),
    )
    plan = planned(graph, [0, 1, 2], Allocation((1,), (1,)), 2)
    kinds = [(move.kind, move.tensor) for move in plan.moves]
    assert kinds == [(Kind.IN, 0), (Kind.OUT, 0), (Kind.IN, 1), (Kind.IN, 0)]
    assert plan.moves[3].after_moves == (1,)
    assert plan.outcome.ns == 2 + 1 + 2 + 2 + 1 + 2 + 1


def test_the_threshold_spares_what_was_used_a_moment_ago() -> None:
    weight = Tensor(1, True, True)
    graph = Graph(
        (
            Operator("a", 1, reads(0)),
            Operator("b", 1, reads(1)),
            Operator("c", 1, reads(2)),
            Operator("d", 1, reads(0)),
            Operator("e", 1, reads(1)),
        ),
        (weight, weight, weight),
    )
    order = graph.program

    def fetched(threshold: int) -> list[int]:
        engine = Engine(graph, Link(2, 1.0, 1.0), threshold)
        plan = engine.plan(order, Allocation((1,), (2,)), passes=1)
        assert plan is not None
        return [move.tensor for move in plan.moves if move.kind is Kind.IN]

    assert fetched(1) == [0, 1, 2, 1]  # 1 is needed last
    assert fetched(2)[:4] == [0, 1, 2, 0]  # but was used right before


@pytest.mark.parametrize("seed", SEEDS)
def test_random_plans_keep_what_they_have_to(seed: int) -> None:
    graph = random_graph(seed, operators=14)
    memory = int(graph.peak_bytes(graph.program) * 0.7)
    engine = Engine(graph, Link(max(memory, graph.operator_bytes() + 6), 1.0, 0.5), seed % 4)
    random = np.random.default_rng(seed)
    found = 0
    for number in range(12):
        schedule = engine.mutated(graph.program, 0.3, number)
        assert graph.is_schedule(schedule)
        pool = random_allocation(engine, [2] * len(engine.sizes.sizes), random)
        plan = engine.plan(schedule, pool)
        if plan is None:
            assert not engine.sizes.runs(pool)
            continue
        assert engine.sizes.runs(pool) or engine.sizes.used_bytes(pool) > engine.link.memory_bytes
        found += 1
        check(engine, plan)
        operators, moves = run(engine, plan)
        assert {n: (r.start_ns, r.end_ns) for n, r in enumerate(plan.runs)} == operators
        timed = {n: m for n, m in enumerate(plan.moves) if m.order is not None}
        assert {n: (m.start_ns, m.end_ns) for n, m in timed.items()} == moves
        assert plan.outcome.ns >= graph.compute_ns
    assert found


@pytest.mark.parametrize("seed", SEEDS)
def test_an_iteration_leaves_the_parameters_that_it_found(seed: int) -> None:
    graph = random_graph(seed, operators=14)
    engine = Engine(graph, Link(graph.peak_bytes(graph.program), 1.0, 1.0), 2)
    start = default(engine)
    assert start is not None
    plan, again = (engine.plan(graph.program, start[0], passes) for passes in (2, 3))
    assert plan is not None and again is not None
    assert plan == replace(again, schedule=plan.schedule)
    held = {move.tensor for move in plan.moves if move.kind is Kind.HELD}
    used = {use.tensor for operator in graph.operators for use in operator.uses}
    assert all(graph.tensors[tensor].is_parameter for tensor in held)
    assert held <= used


def test_with_memory_for_all_nothing_moves_but_inputs_and_outputs() -> None:
    graph = figure_1()
    engine = Engine(graph, Link(12, 1.0, 1.0))
    outcome = engine.evaluate(graph.program, Allocation((1, 2), (8, 2)))
    assert outcome == type(outcome)(graph.compute_ns, 0, 0)


def test_an_operator_without_objects_cannot_run() -> None:
    engine = Engine(figure_1(), Link(10, 1.0, 1.0))
    pool = Allocation((1, 2), (2, 1))
    assert engine.plan(figure_1().program, pool) is None
    assert engine.evaluate(figure_1().program, pool).ns == float("inf")


def test_what_is_of_another_graph_is_refused() -> None:
    graph = figure_1()
    engine = Engine(graph, Link(10, 1.0, 1.0))
    with pytest.raises(ValueError, match="not of this graph"):
        engine.evaluate(graph.program[:-1], FINE)
    with pytest.raises(ValueError, match="not of this graph"):
        engine.evaluate(np.zeros(11, dtype=np.int32), FINE)
    with pytest.raises(ValueError, match="not of this graph"):
        engine.evaluate(graph.program, Allocation((1,), (5,)))
    with pytest.raises(ValueError, match="not of this graph"):
        engine.mutated(np.zeros(11, dtype=np.int32), 0.5, 1)
    with pytest.raises(ValueError, match="rates are not positive"):
        Engine(graph, Link(10, 0.0, 1.0))
    with pytest.raises(ValueError, match="uses no tensor, or one twice"):
        Graph((Operator("op", 1, reads(0, 0)),), (Tensor(1),))
