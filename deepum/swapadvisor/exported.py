"""Programs of torch.export as dataflow graphs, by a simple cost model."""

from __future__ import annotations

import operator as builtin
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from deepum.errors import UsageError
from deepum.swapadvisor.graph import Graph, Operator, Tensor, Use

_LEAST_NS = 1.0


@dataclass(frozen=True)
class Costs:
    """What a device reaches: GFLOP/s in 32 and in fewer bits, and GB/s of its memory."""

    fp32_gflops: float
    tensor_gflops: float
    memory_gbps: float

    def ns(self, node: Any, touched_bytes: int) -> float:
        """The longer of computing and of touching memory once; at least a nanosecond."""
        narrow = any(value.element_size() < 4 for _, value in values(node))
        rate = self.tensor_gflops if narrow else self.fp32_gflops
        return max(flops(node) / rate, touched_bytes / self.memory_gbps, _LEAST_NS)


@dataclass(frozen=True)
class Program:
    """An exported program: its operators' nodes by number, and what holds the content of a node's
    values, (node's name, which of its values), by tensor. Views are no operators: they are made of
    their base where they are used.
    """

    exported: Any
    graph: Graph
    nodes: tuple[Any, ...]
    contents: tuple[tuple[str, int], ...]


def flops(node: Any) -> float:
    """Of products of matrices and convolutions; 0 of all else."""
    count = flop_registry.get(getattr(node.target, "overloadpacket", None))
    if count is None:
        return 0.0
    args, kwargs = torch.fx.node.map_arg(
        (node.args, dict(node.kwargs)), lambda one: one.meta.get("val")
    )
    return float(count(*args, **kwargs, out_val=node.meta["val"]))


def is_view(node: Any) -> bool:
    """Whether what it makes is the content of an argument: what its schema says, and the items of
    such a result.
    """
    if node.target is builtin.getitem:
        return True
    schema = getattr(node.target, "_schema", None)
    return schema is not None and any(
        one.alias_info is not None and not one.alias_info.is_write for one in schema.returns
    )


def values(node: Any) -> list[tuple[int, Any]]:
    """The tensors that it makes, each with its place among its results."""
    return tensors_of(node.meta.get("val"))


def tensors_of(result: Any) -> list[tuple[int, Any]]:
    """Those of a result, with their places."""
    several = result if isinstance(result, (tuple, list)) else [result]
    return [(place, one) for place, one in enumerate(several) if isinstance(one, torch.Tensor)]


def content(node: Any) -> tuple[str, int] | None:
    """Of which node's which value it is, through views; None where it is no tensor."""
    which = 0
    while node.op == "call_function" and is_view(node):
        base = node.args[0]
        if node.target is builtin.getitem and not is_view(base):
            which = node.args[1]
        node = base[0] if isinstance(base, (tuple, list)) else base
    return (node.name, which) if values(node) else None


def _check(node: Any) -> None:
    """Raises UsageError for what no schedule can keep."""
    schema = getattr(node.target, "_schema", None)
    if schema is not None and schema.is_mutable:
        why = "changes an argument; export it with run_decompositions()"
    elif torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
        why = "draws random numbers, in the order of the program; export it in eval() mode"
    elif any(not isinstance(number, int) for _, value in values(node) for number in value.shape):
        why = "has a size that is not known; export it without dynamic shapes"
    else:
        return
    raise UsageError(f"program: {node.name} {why}")


def _bytes(value: Any) -> int:
    return max(1, int(value.numel()) * int(value.element_size()))


def of_program(exported: Any, costs: Costs) -> Program:
    """An exported program without changes in place. Raises UsageError for one that a schedule
    would change.
    """
    signature = exported.graph_signature
    inputs = set(signature.user_inputs)
    numbers: dict[tuple[str, int], int] = {}
    tensors: list[Tensor] = []
    stays = {
        content(node)
        for node in next(n for n in exported.graph.nodes if n.op == "output").all_input_nodes
    }

    def add(node: Any, starts: bool, parameter: bool) -> list[int]:
        added = []
        for which, value in values(node):
            key = (node.name, which)
            numbers[key] = len(tensors)
            tensors.append(Tensor(_bytes(value), starts, parameter or key in stays))
            added.append(numbers[key])
        return added

    nodes, operators = [], []
    for node in exported.graph.nodes:
        if node.op == "placeholder":
            add(node, True, node.name not in inputs)
        elif node.op == "call_function":
            _check(node)
            if is_view(node):
                continue
            keys = dict.fromkeys(content(one) for one in node.all_input_nodes)
            read = [numbers[key] for key in keys if key is not None]
            made = add(node, False, False)
            uses = [
                *(Use(one, True, False) for one in read),
                *(Use(one, False, True) for one in made),
            ]
            touched = sum(tensors[use.tensor].bytes for use in uses)
            nodes.append(node)
            operators.append(Operator(node.name, costs.ns(node, touched), tuple(uses)))
    if not operators:
        raise UsageError("program: has no operator; export one that computes something")
    return Program(exported, Graph(tuple(operators), tuple(tensors)), tuple(nodes), tuple(numbers))


def load_program(name: str, costs: Costs) -> Program:
    """Of a file that torch.export.save wrote. Raises UsageError."""
    load: Callable[[Any], Any] = torch.export.load
    if not Path(name).is_file():
        raise UsageError(f"program {name}: no such file; write one by torch.export.save")
    if not zipfile.is_zipfile(name):
        raise UsageError(f"program {name}: is no such program; write one by torch.export.save")
    try:
        exported = load(name).run_decompositions()
    except (RuntimeError, OSError, ValueError, KeyError) as error:
        message = " ".join(str(error).split())
        raise UsageError(
            f"program {name}: {message[:200]}; write one by torch.export.save of this PyTorch"
        ) from None
    return of_program(exported, costs)
