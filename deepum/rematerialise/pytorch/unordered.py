"""Operators that add to or write the same place from several threads, in any order, so that they
may give other bits each time.
"""

from __future__ import annotations

from typing import Any

import torch

# The list of torch.use_deterministic_algorithms.
UNORDERED_ON_GPU = {
    "index_add",
    "index_add_",
    "index_copy",
    "index_copy_",
    "index_put",
    "index_put_",
    "_index_put_impl_",
    "index_reduce",
    "scatter",
    "scatter_",
    "scatter_add",
    "scatter_add_",
    "scatter_reduce",
    "scatter_reduce_",
    "put",
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
# Where they are run by several threads. Additions by index and by scattering are in order there.
UNORDERED_ON_CPU = {
    "index_copy",
    "index_copy_",
    "index_put",
    "index_put_",
    "_index_put_impl_",
    "put",
    "put_",
}
_BY_INDICES = {"index_put", "index_put_", "_index_put_impl_"}
_BY_SCATTERING = {"scatter", "scatter_"}


def writes_once(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether no place gets two values that differ: all are chosen by masks, or it is one value."""
    if name in _BY_INDICES:
        accumulates = kwargs.get("accumulate", args[3] if len(args) > 3 else False)
        return not accumulates and all(
            one is None or one.dtype in (torch.bool, torch.uint8) for one in args[1]
        )
    if name in _BY_SCATTERING:
        value = kwargs.get("value", args[3] if len(args) > 3 else None)
        return isinstance(value, (bool, int, float, complex)) and "reduce" not in kwargs
    return False
