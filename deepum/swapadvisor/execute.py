"""A plan carried out: the exported program's operators in the plan's order, with moves between two
stores, the pool of the plan and the host's (section 4.2).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from deepum.swapadvisor.engine import Kind, Move, SwapPlan
from deepum.swapadvisor.exported import Program, content, is_view, tensors_of


class PlannedInterpreter(torch.fx.Interpreter):  # type: ignore[misc]
    """Runs nodes as the plan's engine started them. An object of the pool has one tensor at a time;
    an operator finds its arguments in the pool alone. Raises RuntimeError where the plan does not
    have them there.
    """

    def __init__(self, program: Program, plan: SwapPlan) -> None:
        super().__init__(program.exported.graph_module)
        self._program, self._plan = program, plan
        self._numbers = {key: number for number, key in enumerate(program.contents)}
        self._host: dict[int, Any] = {}
        self._pool: dict[int, tuple[int, Any]] = {}  # by object
        self._object: dict[int, int] = {}  # by tensor, where it was last
        self._constants: dict[str, Any] = {}

    def run_plan(self, *inputs: Any) -> tuple[Any, ...]:
        """The program's outputs, in its graph's order, parameters' gradients included."""
        self._begin(inputs)
        places: dict[int, list[Move]] = {}
        steps: list[tuple[int, Move | int]] = [
            (run.order, position) for position, run in enumerate(self._plan.runs)
        ]
        for move in self._plan.moves:
            if move.order is not None:
                steps.append((move.order, move))
            elif move.kind is Kind.HELD:
                self._bring(move)
            else:
                places.setdefault(move.position, []).append(move)
        for _, step in sorted(steps, key=lambda one: one[0]):
            if isinstance(step, int):
                self._operate(step, places.get(step, []))
            elif step.kind is Kind.IN:
                self._bring(step)
            else:
                self._host[step.tensor] = self._there(step.tensor).clone()
                del self._pool[step.object]
        output = next(node for node in self.module.graph.nodes if node.op == "output")
        return tuple(torch.fx.node.map_arg(output.args[0], self._result))

    def _begin(self, inputs: tuple[Any, ...]) -> None:
        exported = self._program.exported
        signature = exported.graph_signature
        held = {**exported.state_dict, **exported.constants}
        targets = {
            **signature.inputs_to_parameters,
            **signature.inputs_to_buffers,
            **signature.inputs_to_lifted_tensor_constants,
        }
        given = iter(inputs)
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                value = held[targets[node.name]] if node.name in targets else next(given)
                number = self._numbers.get((node.name, 0))
                if number is None:
                    self._constants[node.name] = value
                else:
                    self._host[number] = value.detach().clone()

    def _bring(self, move: Move) -> None:
        self._put(move, self._host[move.tensor].clone())

    def _put(self, move: Move, value: Any) -> None:
        self._pool[move.object] = (move.tensor, value)
        self._object[move.tensor] = move.object

    def _there(self, tensor: int) -> Any:
        held, value = self._pool.get(self._object.get(tensor, -1), (-1, None))
        if held != tensor:
            raise RuntimeError(f"{self._program.contents[tensor]} is not in the pool")
        return value

    def _operate(self, position: int, places: list[Move]) -> None:
        node = self._program.nodes[int(self._plan.schedule[position])]
        args, kwargs = torch.fx.node.map_arg((node.args, dict(node.kwargs)), self._value)
        made = self.call_function(node.target, args, kwargs)
        by_tensor = {self._numbers[(node.name, at)]: value for at, value in tensors_of(made)}
        for move in places:
            self._put(move, by_tensor[move.tensor].clone())

    def _value(self, node: Any) -> Any:
        """A node's value from what is in the pool now."""
        return self._made_of(node, self._there)

    def _result(self, node: Any) -> Any:
        """The same when all is over: of the host what is not in the pool."""

        def found(tensor: int) -> Any:
            held = self._pool.get(self._object.get(tensor, -1), (-1, None))
            return held[1] if held[0] == tensor else self._host[tensor]

        return self._made_of(node, found)

    def _made_of(self, node: Any, found: Callable[[int], Any]) -> Any:
        """A view is made of its base anew: that may be somewhere else by now."""
        if node.name in self._constants:
            return self._constants[node.name]
        key = content(node)
        item = node.target is operator.getitem and not is_view(node.args[0])
        if key is not None and (item or not is_view(node)):
            return found(self._numbers[key])
        args, kwargs = torch.fx.node.map_arg(
            (node.args, dict(node.kwargs)), lambda one: self._made_of(one, found)
        )
        return self.call_function(node.target, args, kwargs)
