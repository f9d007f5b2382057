"""Programs of torch.export: as graphs, and carried out by a plan with the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deepum.errors import UsageError
from deepum.planners import Link
from deepum.swapadvisor import Engine
from deepum.swapadvisor.engine import Kind
from deepum.swapadvisor.genetic import Parameters, search

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch")


def branches() -> tuple[Any, Any]:
    """A model of two branches, with views, a result of several tensors, and a loss."""

    class Branches(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.left = torch.nn.Linear(32, 64)
            self.right = torch.nn.Sequential(
                torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 64), torch.nn.Tanh()
            )
            self.norm = torch.nn.LayerNorm(128)
            self.last = torch.nn.Linear(128, 8)

        def forward(self, x: Any) -> Any:
            y = self.norm(torch.cat([torch.relu(self.left(x)), self.right(x)], 1))
            one, other = torch.chunk(y, 2, dim=1)
            return self.last(torch.cat([other, one], 1)).square().sum()

    torch.manual_seed(0)
    return Branches(), torch.randn(16, 32)


def program(training: bool) -> tuple[Any, Any]:
    from deepum.swapadvisor.exported import Costs, of_program

    model, x = branches()
    exported = torch.export.export(model, (x,))
    if training:
        experimental = pytest.importorskip("torch.export.experimental")
        if not hasattr(experimental, "_export_forward_backward"):
            pytest.skip("needs a PyTorch that exports a backward pass")
        exported = experimental._export_forward_backward(exported)
    else:
        exported = exported.run_decompositions()
    return of_program(exported, Costs(1e-2, 1e-1, 1.0)), x


@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_a_plan_computes_the_same_numbers(training: bool) -> None:
    from deepum.swapadvisor.execute import PlannedInterpreter

    made, x = program(training)
    graph = made.graph
    engine = Engine(graph, Link(int(graph.peak_bytes(graph.program) * 0.7), 0.2, 0.2))
    *_, found = search(engine, Parameters(generations=6, seconds=100))
    plan = engine.plan(found.best.schedule, found.best.allocation)
    assert plan is not None
    kinds = [move.kind for move in plan.moves]
    assert Kind.IN in kinds and (not training or Kind.OUT in kinds)
    parameters = [made.exported.state_dict[name] for name in _parameters(made.exported)]
    expected = torch.fx.Interpreter(made.exported.graph_module).run(*parameters, x)
    values = PlannedInterpreter(made, plan).run_plan(x)
    assert len(values) == len(expected) == (11 if training else 1)
    assert all(torch.equal(one, other) for one, other in zip(values, expected, strict=True))


def _parameters(exported: Any) -> list[str]:
    signature = exported.graph_signature
    return [
        spec.target for spec in signature.input_specs if spec.arg.name not in signature.user_inputs
    ]


def test_another_order_computes_the_same_numbers() -> None:
    from deepum.swapadvisor.execute import PlannedInterpreter

    made, x = program(True)
    engine = Engine(made.graph, Link(made.graph.peak_bytes(made.graph.program), 1.0, 1.0))
    *_, found = search(engine, Parameters(generations=0, seconds=100))
    outputs = []
    for seed in range(4):
        order = engine.mutated(made.graph.program, 0.5, seed)
        plan = engine.plan(order, found.best.allocation)
        assert plan is not None and order.tolist() != made.graph.program.tolist()
        outputs.append(PlannedInterpreter(made, plan).run_plan(x))
    for one in outputs[1:]:
        assert all(torch.equal(a, b) for a, b in zip(one, outputs[0], strict=True))


def test_sizes_and_times_are_those_of_the_program() -> None:
    made, _ = program(False)
    graph = made.graph
    sizes = {key: tensor.bytes for key, tensor in zip(made.contents, graph.tensors, strict=True)}
    assert sizes[("p_left_weight", 0)] == 32 * 64 * 4
    starting = [one for one in graph.tensors if one.starts]
    assert len(starting) == 11 and sum(not one.stays for one in starting) == 1  # x
    times = {operator.name: operator.ns for operator in graph.operators}
    assert times["addmm"] == 2 * 16 * 32 * 64 / 1e-2
    assert times["relu"] == 2 * 16 * 64 * 4 / 1.0
    assert "permute" not in times  # a view


def test_a_plan_that_lost_a_move_is_noticed() -> None:
    from dataclasses import replace

    from deepum.swapadvisor.execute import PlannedInterpreter

    made, x = program(False)
    graph = made.graph
    engine = Engine(graph, Link(int(graph.peak_bytes(graph.program) * 0.7), 0.2, 0.2))
    *_, found = search(engine, Parameters(generations=0, seconds=100))
    plan = engine.plan(found.best.schedule, found.best.allocation)
    assert plan is not None
    moves = [move for move in plan.moves if move.kind is not Kind.IN]
    with pytest.raises(RuntimeError, match="is not in the pool"):
        PlannedInterpreter(made, replace(plan, moves=tuple(moves))).run_plan(x)


def test_what_a_schedule_would_change_is_refused(tmp_path: Path) -> None:
    from deepum.swapadvisor.exported import Costs, load_program, of_program

    costs = Costs(1.0, 1.0, 1.0)

    class Random(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return torch.nn.functional.dropout(x, 0.5, training=True)

    class Nothing(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x

    x = torch.ones(4)
    with pytest.raises(UsageError, match="draws random numbers"):
        of_program(torch.export.export(Random(), (x,)), costs)
    with pytest.raises(UsageError, match="has no operator"):
        of_program(torch.export.export(Nothing(), (x,)), costs)
    with pytest.raises(UsageError, match="no such file"):
        load_program(str(tmp_path / "none.pt2"), costs)
    (tmp_path / "bad.pt2").write_bytes(b"no program")
    with pytest.raises(UsageError, match="is no such program"):
        load_program(str(tmp_path / "bad.pt2"), costs)
