"""What is known of PyTorch's operators, from schemas and tags, and where those say too little.

A schema tells which arguments are changed in place and which results are views; tags tell which
operators draw random numbers or give other bits each time. The tables below are what neither says.
"""

from __future__ import annotations

from typing import Any

import torch

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
# Running statistics that the schema does not say are changed: by position, where `training` is.
_RUNNING = {
    "native_batch_norm": ((3, 4), 5),
    "cudnn_batch_norm": ((3, 4), 5),
    "miopen_batch_norm": ((3, 4), 5),
    "_native_batch_norm_legit": ((3, 4), 5),
    "_batch_norm_with_update": ((3, 4), None),
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
_MOVES_MEMORY = {"set_", "resize_", "resize_as_", "_resize_output_"}
# Whose operators are known to be functions of their arguments.
_KNOWN_LIBRARIES = {"aten", "torchvision"}


class Operator:
    """changed: positions of arguments that are changed in place, and names of those given by name.
    is_view: its results are views of arguments, no memory is read. is_random: it draws random
    numbers. may_repeat: run again on the same arguments it gives the same bits. is_composite: it is
    made of other operators, and comes here whole in inference mode only. leaves_bytes: its results
    have bytes that it does not write.
    """

    __slots__ = (
        "changed",
        "changed_names",
        "is_composite",
        "is_metadata_only",
        "is_overwriting",
        "is_random",
        "is_view",
        "leaves_bytes",
        "may_repeat",
        "may_repeat_on_gpu",
        "moves_memory",
        "name",
        "running",
    )

    def __init__(self, function: Any) -> None:
        schema = function._schema
        library, _, name = schema.name.partition("::")
        self.name = name
        written = [
            place
            for place, argument in enumerate(schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        self.changed = tuple(written)
        self.changed_names = frozenset(schema.arguments[place].name for place in written)
        self.is_view = not written and any(
            argument.alias_info is not None for argument in schema.arguments
        )
        tags = set(function.tags)
        self.is_random = torch.Tag.nondeterministic_seeded in tags
        self.is_composite = _has_kernel(function, "CompositeImplicitAutograd") and not any(
            _has_kernel(function, key) for key in ("CPU", "CUDA")
        )
        self.is_metadata_only = name in _METADATA_ONLY
        self.is_overwriting = name in _OVERWRITING
        self.leaves_bytes = name in _LEAVES_BYTES
        self.moves_memory = name in _MOVES_MEMORY or torch.Tag.inplace_view in tags
        self.running = _RUNNING.get(name) if library == "aten" else None
        self.may_repeat = (
            library in _KNOWN_LIBRARIES
            and not self.moves_memory
            and torch.Tag.nondeterministic_bitwise not in tags
        )
        self.may_repeat_on_gpu = self.may_repeat and name not in _UNORDERED_ON_GPU

    def running_statistics(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        """Positions of running statistics that this call updates and does not use."""
        if self.running is None:
            return ()
        places, training = self.running
        if training is not None and not args[training]:
            return ()
        return places


def _has_kernel(function: Any, key: str) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(function.name(), key))


class Operators(dict[Any, Operator]):
    """Operator by function, made when it is first asked for."""

    def __missing__(self, function: Any) -> Operator:
        operator = self[function] = Operator(function)
        return operator
