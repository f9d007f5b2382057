"""Reductions, losses and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deepum.capture.launch import Launch, Scratch, Use, read, update, write
from deepum.capture.operators.call import Call, handles, one_kernel
from deepum.trace.work import READ, WRITE

_MOST_PLACES = 4096


@dataclass(frozen=True)
class _OneOfEachRow:
    """An element of each row, at a column that the row's number decides: every block is met, few of
    its bytes.
    """

    rows: int
    columns: int
    itemsize: int

    def at(self, _step: int) -> Sequence[tuple[int, int]]:
        every = max(1, -(-self.rows // _MOST_PLACES))
        scattered = 0x9E3779B97F4A7C15
        return [
            (
                (row * self.columns + row * scattered % self.columns) * self.itemsize,
                self.itemsize * every,
            )
            for row in range(0, self.rows, every)
        ]


def _chosen(matrix: Any, flags: int) -> Use:
    rows = matrix.shape[0] if matrix.dim() > 1 else 1
    return Use(matrix, flags, _OneOfEachRow(rows, matrix.numel() // max(rows, 1), matrix.itemsize))


@handles("nll_loss_forward")
def _loss(call: Call) -> list[Launch]:  # Loss.cu
    uses = [
        *read(call["target"]),
        _chosen(call["self"], READ),
        *read(call["weight"]),
        *write(*call.made),
    ]
    return [Launch(call.name, uses)]


@handles("nll_loss_backward")
def _loss_backward(call: Call) -> list[Launch]:
    (out,) = call.made
    uses = read(call["grad_output"], call["target"], call["weight"], call["total_weight"])
    return [Launch("fill", write(out)), Launch(call.name, [*uses, _chosen(out, WRITE)])]


@handles("max_pool2d_with_indices_backward")
def _zeros_first(call: Call) -> list[Launch]:
    (out,) = call.made
    return [Launch("fill", write(out)), Launch(call.name, read(*call.inputs) + update(out))]


# Reduce.cuh, setReduceConfig: many inputs for few outputs are divided among thread blocks, which
# meet at semaphores that are set to zero before. From where on depends on the card; these are what
# a V100's 80 multiprocessors come to, roughly [?].
_DIVIDED_INPUTS, _DIVIDED_OUTPUTS, _PARTS = 512, 1 << 15, 64


@handles(
    "sum", "mean", "amax", "amin", "norm", "linalg_vector_norm", "var", "var_mean", "any", "all"
)
def _reduction(call: Call) -> list[Launch]:
    (source, *_), out = call.inputs, call.made[0] if call.made else call.changed[0]
    if source.numel() < _DIVIDED_INPUTS * max(out.numel(), 1) or out.numel() > _DIVIDED_OUTPUTS:
        return one_kernel(call)
    semaphores, parts = (
        Scratch("semaphores", 4 * (1 + out.numel() // 128)),
        Scratch("parts", 4 * _PARTS * out.numel()),
    )
    return [
        Launch("memset", write(semaphores), memcpy=True),
        Launch(
            call.name, read(source) + update(parts, semaphores) + write(*call.made, *call.changed)
        ),
    ]
