"""From operators of ATen to launches. One without an entry is one kernel that reads its inputs and
writes its outputs: nearly all are.

Numbers of kernels and their operands are those of the CUDA sources (aten/src/ATen/native/cuda),
named where they are not obvious.
"""

from __future__ import annotations

from deepum.capture.launch import Launch
from deepum.capture.operators import (  # noqa: F401
    attention,
    copies,
    gathers,
    normalisation,
    products,
    random,
    reductions,
)
from deepum.capture.operators.call import HANDLERS, Call, one_kernel
from deepum.capture.operators.lists import of_lists

__all__ = ["ALLOCATE", "Call", "launches"]

# Memory without a launch.
ALLOCATE = {
    "empty",
    "empty_like",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "empty_permuted",
}


def launches(call: Call) -> list[Launch]:
    """What the operator does."""
    if call.name.startswith("_foreach_"):
        return of_lists(call)
    return HANDLERS.get(call.name, one_kernel)(call)
