"""Which of PyTorch's operators give the same bits when they are run again. Tags tell those that
draw random numbers or give other bits each time, the tables below what tags do not say.
"""

from __future__ import annotations

from typing import Any

import torch

from deepum.pytorch.operators import ChangingOperator
from deepum.rematerialise.pytorch.unordered import UNORDERED_ON_CPU, UNORDERED_ON_GPU

# Their arguments' content is not read, only sizes, strides and types.
_METADATA_ONLY = {
    "empty_like",
    "zeros_like",
    "ones_like",
    "full_like",
    "rand_like",
    "randn_like",
    "randint_like",
    "new_empty",
    "new_empty_strided",
    "new_zeros",
    "new_ones",
    "new_full",
}
# In place, and what was there before is not read, if all of it is written.
_OVERWRITING = {
    "zero_",
    "fill_",
    "copy_",
    "normal_",
    "uniform_",
    "bernoulli_",
    "random_",
    "exponential_",
    "cauchy_",
    "geometric_",
    "log_normal_",
}
# Their results have bytes that nothing wrote.
_LEAVES_BYTES = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "mkldnn_rnn_layer",  # its workspace
    "new_empty",
    "new_empty_strided",
}
# Those that change what memory a tensor has.
_MOVES_MEMORY = {"set_", "resize_", "resize_as_", "_resize_output_", "_cudnn_rnn_flatten_weight"}


class Operator(ChangingOperator):
    """is_random: it draws random numbers. may_repeat: run again on the same arguments it gives the
    same bits, unless it is unordered on the device (`deepum.rematerialise.pytorch.unordered`).
    leaves_bytes: its results have bytes that it does not write.
    """

    __slots__ = (
        "is_metadata_only",
        "is_overwriting",
        "is_random",
        "is_unordered_on_cpu",
        "is_unordered_on_gpu",
        "leaves_bytes",
        "may_repeat",
        "moves_memory",
    )

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        name = self.name
        tags = set(function.tags)
        self.is_random = torch.Tag.nondeterministic_seeded in tags
        self.is_metadata_only = name in _METADATA_ONLY
        self.is_overwriting = name in _OVERWRITING
        self.leaves_bytes = name in _LEAVES_BYTES
        self.moves_memory = name in _MOVES_MEMORY or torch.Tag.inplace_view in tags
        self.may_repeat = (
            self.is_known
            and not self.moves_memory
            and torch.Tag.nondeterministic_bitwise not in tags
        )
        self.is_unordered_on_cpu = name in UNORDERED_ON_CPU
        self.is_unordered_on_gpu = name in UNORDERED_ON_GPU


class Operators(dict[Any, Operator]):
    """Operator by function, made when it is first asked for."""

    def __missing__(self, function: Any) -> Operator:
        operator = self[function] = Operator(function)
        return operator
