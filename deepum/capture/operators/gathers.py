"""Gathers and scatters, lookups in tables and their gradients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from deepum.capture.launch import Launch, Scratch, Use, read, span, update, write
from deepum.capture.operators.call import Call, handles, one_kernel
from deepum.trace.work import READ, WRITE


def _gathered(call: Call, table: Any, indices: Any, row_elements: int, flags: int) -> Use:
    row = row_elements * table.itemsize
    return Use(table, flags, call.rows(indices, table, row))


@handles("embedding")
def _embedding(call: Call) -> list[Launch]:
    table, indices = call["weight"], call["indices"]
    return [
        Launch(
            call.name,
            [
                _gathered(call, table, indices, table.shape[1], READ),
                *read(indices),
                *write(*call.made),
            ],
            sparse=True,
        )
    ]


@handles("gather", "scatter", "scatter_", "scatter_add", "scatter_add_", "take", "index_fill_")
def _everywhere(call: Call) -> list[Launch]:
    """Marked, since their kernels are known for such; but the indices they get in models reach all
    over their operands.
    """
    return [replace(launch, sparse=True) for launch in one_kernel(call)]


@handles("index_select")
def _index_select(call: Call) -> list[Launch]:
    table, indices, (out,) = call["self"], call["index"], call.made
    if call["dim"] != 0:
        return _everywhere(call)
    row = out.numel() // max(indices.numel(), 1)
    return [
        Launch(
            call.name,
            [_gathered(call, table, indices, row, READ), *read(indices), *write(out)],
            sparse=True,
        )
    ]


_FEW_INDICES = 3072  # Embedding.cu: up to so many one kernel scatters
_SORTS = 8  # kernels of a sort by key of 64-bit numbers, and the prefix sums behind it: cub [?]


def _sort(indices: Any) -> tuple[list[Launch], Scratch]:
    """Sorting indices with their positions: passes over scratch memory."""
    size = indices.numel() * 8
    ordered, spare = Scratch("sorted", 2 * size), Scratch("spare", 2 * size)
    first = Launch("arange", write(spare))
    passes = [
        Launch(f"sort {i}", read(indices if i == 0 else spare) + update(ordered))
        for i in range(_SORTS)
    ]
    return [first, *passes], ordered


@handles("embedding_dense_backward")
def _embedding_backward(call: Call) -> list[Launch]:
    gradient, indices, (out,) = call["grad_output"], call["indices"], call.made
    rows = _gathered(call, out, indices, out.shape[1], READ | WRITE)
    zeros = Launch("fill", write(out))
    if indices.numel() <= _FEW_INDICES:
        return [
            zeros,
            Launch(
                "embedding_backward_feature_kernel", [rows, *read(indices, gradient)], sparse=True
            ),
        ]
    sorting, ordered = _sort(indices)
    partial = Scratch("partial sums", indices.numel() * out.shape[1] * 4 // 2)
    return [
        zeros,
        *sorting,
        Launch("compute_grad_weight", read(ordered, gradient) + write(partial)),
        Launch("sum_and_scatter", [rows, *read(ordered, partial)], sparse=True),
    ]


@handles("_embedding_bag", "_embedding_bag_forward_only")
def _embedding_bag(call: Call) -> list[Launch]:
    table, indices = call["weight"], call["indices"]
    uses = [
        *read(indices, call["offsets"]),
        _gathered(call, table, indices, table.shape[1], READ),
        *write(*call.made),
    ]
    return [Launch(call.name, uses, sparse=True)]


@handles("_embedding_bag_dense_backward")
def _embedding_bag_backward(call: Call) -> list[Launch]:
    indices, gradient, (out,) = call["indices"], call["grad"], call.made
    sorting, ordered = _sort(indices)
    rows = _gathered(call, out, indices, out.shape[1], READ | WRITE)
    return [
        Launch("fill", write(out)),
        *sorting,
        Launch("compute_grad_weight_bags", read(ordered, gradient, call["offset2bag"])),
        Launch("sum_and_scatter", [rows, *read(ordered)], sparse=True),
    ]


@handles("_embedding_bag_backward")
def _embedding_bag_either_backward(call: Call) -> list[Launch]:
    if not call["sparse"]:
        return _embedding_bag_backward(call)
    # What is made is a sparse gradient: a row of values for each index; the indices may be those
    # that came in.
    if len(call.made) > 1:
        call.same_rows(call.made[0], call["indices"])
    return [
        Launch(
            "index_select", read(call["grad"], call["offset2bag"]) + write(*call.made), sparse=True
        )
    ]


@handles("index")
def _index(call: Call) -> list[Launch]:
    table, (out,) = call["self"], call.made
    indices = next((index for index in call["indices"] if index is not None), None)
    if indices is None:
        return one_kernel(call)
    count = max(index.numel() for index in call["indices"] if index is not None)
    rows = Use(
        table, READ, call.rows(indices, table, out.numel() * out.itemsize // max(count, 1), count)
    )
    return [
        Launch(
            call.name,
            [rows, *read(*(i for i in call["indices"] if i is not None)), *write(out)],
            sparse=True,
        )
    ]


@handles("index_put", "index_put_", "_index_put_impl_", "index_add", "index_add_", "index_copy_")
def _index_put(call: Call) -> list[Launch]:
    given = call["indices"] if call["indices"] is not None else [call["index"]]
    values = call["values"] if call["values"] is not None else call["source"]
    indices = [index for index in given if index is not None]
    target = call.changed[0] if call.changed else call.made[0]
    count = max(index.numel() for index in indices)
    row = (
        max(span(target) // max(target.shape[0], 1), 1)
        if len(indices) == 1
        else values.numel() * values.itemsize // max(count, 1)
    )
    flags = WRITE if call.name == "index_copy_" else READ | WRITE
    first = (
        [] if call.changed else [Launch("copy", read(call["self"]) + write(target), memcpy=True)]
    )
    accumulate = bool(call["accumulate"])
    sorting, ordered = _sort(indices[0]) if accumulate else ([], indices[0])
    scatter = [
        Use(target, flags, call.rows(indices[0], target, row, count)),
        *read(ordered, values),
    ]
    return [*first, *sorting, Launch(call.name, scatter, sparse=True)]


@handles("add_", "add")
def _add(call: Call) -> list[Launch]:
    other = call["other"]
    if not getattr(other, "is_sparse", False):
        return one_kernel(call)
    # SparseCUDATensorMath.cu: the rows that the gradient has
    target = call["self"]
    values = other._values()
    rows = Use(
        target,
        READ | WRITE,
        call.rows(other._indices(), target, target.shape[1] * target.itemsize, values.shape[0]),
    )
    return [Launch("sparseElementwiseKernel", [rows, *read(values, other._indices())], sparse=True)]
