"""Fused attention: mem_eff_attention, flash_attn. Rates as in
native/simgpu/kernels/attention.cpp.
"""

from __future__ import annotations

from typing import Any

from deepum.capture.launch import Launch, Scratch, read, update, write
from deepum.capture.operators.call import Call, handles
from deepum.trace.work import Cost

_EFFICIENT, _FLASH = 0.33, 0.6


def _attention_cost(
    query: Any, key: Any, value: Any, products: int, causal: bool, fraction: float
) -> Cost:
    batches, heads, queries, depth = query.shape
    keys, value_depth = key.shape[-2], value.shape[-1]
    flops = (
        products
        * 2.0
        * batches
        * heads
        * queries
        * keys
        * (depth + value_depth)
        / 2
        * (0.5 if causal and queries > 1 else 1)
    )
    return Cost(flops=flops, matrix_units=query.itemsize <= 2, peak_fraction=fraction)


@handles("_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention")
def _attention(call: Call) -> list[Launch]:
    query, key, value = call["query"], call["key"], call["value"]
    fraction = _FLASH if "flash" in call.name else _EFFICIENT
    cost = _attention_cost(query, key, value, 2, bool(call["is_causal"]), fraction)
    return [Launch(call.name, read(query, key, value, call["attn_bias"]) + write(*call.made), cost)]


@handles(
    "_scaled_dot_product_efficient_attention_backward",
    "_scaled_dot_product_flash_attention_backward",
)
def _attention_backward(call: Call) -> list[Launch]:
    gradient = call["grad_out_"] if call["grad_out_"] is not None else call["grad_out"]
    query, key, value, out, logsumexp = (
        call[name] for name in ("query", "key", "value", "out", "logsumexp")
    )
    flash = "flash" in call.name
    batches, heads, queries, depth = query.shape
    cost = _attention_cost(
        query, key, value, 5, bool(call["is_causal"]), _FLASH if flash else _EFFICIENT
    )
    delta, ordered = (
        Scratch(name, batches * heads * queries * 4) for name in ("delta", "delta in order")
    )
    if flash:
        return [
            Launch("flash_bwd_dot_do_o", read(gradient, out) + write(delta)),
            Launch(
                call.name,
                read(query, key, value, gradient, logsumexp, delta) + write(*call.made),
                cost,
            ),
        ]
    # attention_backward.cu: delta = (grad_out * out).sum(-1), copied; kernel_backward.h: sums of
    # the queries' gradient, and with half precision those of keys and values, in FP32, behind
    # counters of 128 bytes.
    product = Scratch("product", batches * heads * queries * value.shape[-1] * out.itemsize)
    sums = queries * depth + (
        key.shape[-2] * (depth + value.shape[-1]) if query.itemsize < 4 else 0
    )
    workspace = Scratch("workspace", batches * heads * (4 * sums + 128))
    return [
        Launch("mul", read(gradient, out) + write(product)),
        Launch("sum", read(product) + write(delta)),
        Launch("copy", read(delta) + write(ordered)),
        Launch("fill", write(workspace)),
        Launch(
            call.name,
            [
                *read(query, key, value, call["attn_bias"], logsumexp, out, gradient, ordered),
                *write(*call.made),
                *update(workspace),
            ],
            cost,
        ),
    ]
