"""Which of PyTorch's operators give the same bits when they are run again. Tags tell those that
draw random numbers or give other bits each time, the tables below what tags do not say.
"""

from __future__ import annotations

from typing import Any

import torch

from deepum.pytorch.operators import ChangingOperator

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
# Atomic additions in any order on a GPU (the list of torch.use_deterministic_algorithms).
_UNORDERED_ON_GPU = {
    "index_add",
    "index_add_",
    "index_put",
    "index_put_",
    "_index_put_impl_",
    "index_reduce",
    "scatter_add",
    "scatter_add_",
    "scatter_reduce",
    "scatter_reduce_",
    "put_",
    "histc",
    "bincount",
    "cumsum",
    "kthvalue",
    "median",
    "embedding_dense_backward",
    "_embedding_bag_dense_backward",
    "_ctc_loss_backward",
    "nll_loss2d_forward",
    "max_pool3d_with_indices_backward",
    "max_unpool2d",
    "max_unpool3d",
    "adaptive_avg_pool2d_backward",
    "_adaptive_avg_pool2d_backward",
    "_adaptive_avg_pool3d_backward",
    "adaptive_max_pool2d_backward",
    "avg_pool3d_backward",
    "fractional_max_pool2d_backward",
    "fractional_max_pool3d_backward",
    "reflection_pad1d_backward",
    "reflection_pad2d_backward",
    "reflection_pad3d_backward",
    "replication_pad1d_backward",
    "replication_pad2d_backward",
    "replication_pad3d_backward",
    "upsample_linear1d_backward",
    "upsample_bilinear2d_backward",
    "upsample_bicubic2d_backward",
    "upsample_trilinear3d_backward",
    "grid_sampler_2d_backward",
    "grid_sampler_3d_backward",
    "_scaled_dot_product_efficient_attention_backward",
    "_scaled_dot_product_flash_attention_backward",
    "_scaled_dot_product_cudnn_attention_backward",
    "_efficient_attention_backward",
    "_flash_attention_backward",
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
    same bits. leaves_bytes: its results have bytes that it does not write.
    """

    __slots__ = (
        "is_metadata_only",
        "is_overwriting",
        "is_random",
        "leaves_bytes",
        "may_repeat",
        "may_repeat_on_gpu",
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
        self.may_repeat_on_gpu = self.may_repeat and name not in _UNORDERED_ON_GPU


class Operators(dict[Any, Operator]):
    """Operator by function, made when it is first asked for."""

    def __missing__(self, function: Any) -> Operator:
        operator = self[function] = Operator(function)
        return operator
