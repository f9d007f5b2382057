"""Matrix products, and convolutions: one implicit product each, as cuDNN has them, without
workspace.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from deepum.capture.launch import Launch, Scratch, Use, read, update, write
from deepum.capture.operators.call import Call, handles
from deepum.trace.work import Cost


@handles("mm", "addmm", "bmm", "baddbmm", "_addmm_activation")
def _product(call: Call) -> list[Launch]:
    a, b = (
        (call["self"], call["mat2"]) if call.name in ("mm", "bmm") else (call["mat1"], call["mat2"])
    )
    if call.name == "baddbmm":
        a, b = call["batch1"], call["batch2"]
    batches = a.shape[0] if a.dim() == 3 else 1
    cost = call.cost(a.shape[-2], b.shape[-1], a.shape[-1], batches, a)
    added = [] if call.name in ("mm", "bmm") else [call["self"]]
    # cuBLAS has matrices by columns: what PyTorch has by rows is its product the other way round.
    done = []
    result = write(*call.made)
    # A bias vector is added by cuBLASLt as it writes; anything else is copied to the result first.
    if added and added[0].dim() > 1:
        done.append(Launch("copy", read(*added) + result))
        added, result = [], update(*call.made)
    # CUBLAS_WORKSPACE_CONFIG :4096:2:16:8, the default before Hopper; a handle for each thread that
    # computes, of which autograd has its own
    scratch = Scratch("cublas backward" if call.backward else "cublas", 8_519_680)
    return [*done, Launch("gemm", [*read(b, a, *added), *result, Use(scratch, 0)], cost)]


def _groups(call: Call) -> int:
    return int(call["groups"] or 1)


def _convolution_cost(
    call: Call, source: Any, weight: Any, result_shape: Sequence[int], what: str
) -> Cost:
    """Its three products: `forward`, `input` (gradient of the input), `weight`. A transposed one is
    the gradient of the other's input.
    """
    groups = _groups(call)
    places = prod(source.shape[2:]) if call["transposed"] else prod(result_shape[2:])
    rows = source.shape[0] * places
    first, second = weight.shape[0] // groups, weight.shape[1] * prod(weight.shape[2:])
    if what == "weight":
        return call.cost(first, second, rows, groups, source)
    if (what == "forward") == bool(call["transposed"]):
        return call.cost(rows, second, first, groups, source)
    return call.cost(rows, first, second, groups, source)


@handles("convolution", "_convolution", "cudnn_convolution")
def _convolution(call: Call) -> list[Launch]:
    source, weight = call["input"], call["weight"]
    (out,) = call.made
    done = [
        Launch(
            "convolution",
            read(source, weight) + write(out),
            _convolution_cost(call, source, weight, out.shape, "forward"),
        )
    ]
    if call["bias"] is not None:
        done.append(Launch("add_bias", update(out) + read(call["bias"])))
    return done


@handles("convolution_backward")
def _convolution_backward(call: Call) -> list[Launch]:
    gradient, source, weight = call["grad_output"], call["input"], call["weight"]
    made = list(call.made)
    done = []
    for wanted, what in zip(call["output_mask"], ("input", "weight", "bias"), strict=True):
        if not wanted:
            continue
        out = made.pop(0)
        if what == "bias":
            done.append(Launch("sum", read(gradient) + write(out)))
            continue
        other = weight if what == "input" else source
        cost = _convolution_cost(call, source, weight, gradient.shape, what)
        done.append(Launch(f"convolution_{what}", read(gradient, other) + write(out), cost))
    return done
