"""Iterations as graphs, and graphs as iterations in another order."""

from __future__ import annotations

import numpy as np
import pytest
from dataflow_graphs import random_graph

from deepum.planners import Event, Item, Iteration, Link, Problem
from deepum.planners.planner import Limits, Search
from deepum.swapadvisor import Graph, Operator, Tensor, Use
from deepum.swapadvisor.traced import graph_of, iteration_of


def read(launch: int) -> Event:
    return Event(launch, reads=True)


def write(launch: int) -> Event:
    return Event(launch, writes=True)


def graph(*items: Item, launches: int = 4) -> Graph:
    return graph_of(Iteration((1.0,) * launches, items))


def test_content_that_goes_on_is_a_parameter() -> None:
    made = graph(Item(8, (read(0), Event(3, reads=True, writes=True))))
    assert made.tensors == (Tensor(8, starts=True, stays=True),)
    assert made.operators[3].uses == (Use(0, True, True),)
    assert made.edges == ((0, 3),)


def test_memory_that_is_used_again_is_another_tensor() -> None:
    first, second = (write(0), read(1)), (write(2), read(3))
    made = graph(Item(8, (*first, Event.death(2), *second)))
    assert made.tensors == (Tensor(8), Tensor(8))
    assert made.edges == ((0, 1), (2, 3))  # the second need not wait for the first
    assert graph(Item(8, first + second)) == made  # what is overwritten has ended, too


def test_parts_that_are_used_alike_are_one_tensor() -> None:
    uses = (write(0), read(1))
    made = graph(Item(8, (*uses, Event.death(2), write(2))), Item(4, uses))
    assert sorted(tensor.bytes for tensor in made.tensors) == [8, 12]


def test_what_the_iteration_leaves_anew_is_the_parameter_it_finds() -> None:
    made = graph(Item(8, (read(0), Event.death(1), write(2), read(3))))
    assert made.tensors == (Tensor(8, True, True),)
    assert made.edges == ((0, 2), (2, 3))
    assert [use for one in made.operators for use in one.uses][1] == Use(0, False, True)


def test_what_the_program_brings_itself_costs_nothing() -> None:
    ended = graph(Item(8, (Event.death(0), read(0), read(1))))
    assert ended.tensors == (Tensor(8),)
    assert ended.operators[0].uses == (Use(0, False, True),)
    assert graph(Item(8, (read(0), read(1), Event.death(2)))) == ended


def test_writers_wait_for_readers() -> None:
    made = graph(Item(8, (write(0), read(1), read(2), Event(3, reads=True, writes=True))))
    assert made.edges == ((0, 1), (0, 2), (0, 3), (1, 3), (2, 3))
    assert made.is_schedule([0, 2, 1, 3]) and not made.is_schedule([0, 3, 1, 2])
    assert not made.is_schedule([0, 1, 2, 2])


def test_a_peak_is_of_what_is_alive() -> None:
    made = graph(
        Item(100, (read(1),)), Item(8, (write(0), read(2))), Item(4, (write(3), Event.death(0)))
    )
    assert made.peak_bytes(made.program) == 108
    assert made.operator_bytes() == 100
    assert made.compute_ns == 4.0


@pytest.mark.parametrize("seed", range(10))
def test_there_and_back_again(seed: int) -> None:
    made = random_graph(seed)
    tensors = tuple(Tensor(one.bytes, one.is_parameter, one.is_parameter) for one in made.tensors)
    operators = tuple(
        Operator(
            one.name,
            one.ns,
            tuple(
                Use(
                    u.tensor,
                    u.reads and (tensors[u.tensor].starts or not made.tensors[u.tensor].starts),
                    u.writes,
                )
                for u in one.uses
            ),
        )
        for one in made.operators
    )
    plain = Graph(operators, tensors)
    again = graph_of(iteration_of(plain, plain.program))
    assert again.peak_bytes(again.program) <= plain.peak_bytes(plain.program)
    assert again.compute_ns == plain.compute_ns
    assert [len(one.uses) > 0 for one in again.operators] == [
        len(one.uses) > 0 for one in plain.operators
    ]


def test_an_order_that_frees_memory_is_planned_with_less() -> None:
    """Two branches: one after the other they need less than both at once."""
    big, small = Tensor(80), Tensor(10)
    operators = (
        Operator("a", 100, (Use(0, False, True),)),
        Operator("b", 100, (Use(1, False, True),)),
        Operator("a2", 100, (Use(0, True, False), Use(2, False, True))),
        Operator("b2", 100, (Use(1, True, False), Use(3, False, True))),
        Operator("c", 100, (Use(2, True, False), Use(3, True, False))),
    )
    made = Graph(operators, (big, big, small, small))
    other = np.array([0, 2, 1, 3, 4], dtype=np.int32)
    assert made.is_schedule(other)
    link = Link(110, 1.0, 1.0)
    here, there = (Problem(iteration_of(made, one, 40), link) for one in (made.program, other))
    assert not here.fits and there.fits
    planned = Search().best(here, Limits(2.0))
    assert planned is not None and planned.ns > made.compute_ns
    assert there.replay(there.keep_all()).ns == made.compute_ns
