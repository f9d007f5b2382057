"""What a plan has on the device at one time."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
from dataflow_graphs import random_graph

from deepum.arena import Problem
from deepum.planners import Link
from deepum.swapadvisor import Engine, SwapPlan
from deepum.swapadvisor.resident import arena_bytes, resident
from deepum.swapadvisor.starts import default


def planned(seed: int) -> tuple[Engine, SwapPlan]:
    graph = random_graph(seed)
    for memory in (graph.peak_bytes(graph.program) * 2 // 3, 1 << 20):
        engine = Engine(graph, Link(memory, 1.0, 1.0))
        start = default(engine)
        if start and (plan := engine.plan(graph.program, start[0])):
            return engine, plan
    raise AssertionError(f"seed {seed}: no plan can run")


@pytest.mark.parametrize("seed", range(30))
def test_an_arena_needs_no_more_than_the_pool(seed: int) -> None:
    engine, plan = planned(seed)
    buffers = resident(engine.graph, plan)
    problem = Problem(buffers)
    assert problem.load <= engine.sizes.used_bytes(plan.allocation)
    assert problem.load <= arena_bytes(engine.graph, plan, 0.2, 1)


@pytest.mark.parametrize("seed", range(30))
def test_each_operator_finds_its_tensors_there(seed: int) -> None:
    engine, plan = planned(seed)
    buffers = resident(engine.graph, plan)
    for number, run in zip(plan.schedule.tolist(), plan.runs, strict=True):
        for use in engine.graph.operators[number].uses:
            assert any(
                one.name.startswith(f"{use.tensor} in ")
                and one.begin <= run.start_ns
                and run.end_ns <= one.end
                for one in buffers
            )
