"""Normalisation, by layer, batch and group."""

from __future__ import annotations

from typing import Any

from deepum.capture.launch import Launch, Scratch, read, update, write
from deepum.capture.operators.call import Call, handles
from deepum.trace.work import Cost


def _each(tensor: Any, flops: int) -> Cost:
    """So many FLOPs for each element, as on the simulated GPU:
    native/simgpu/kernels/normalisation.cpp and rows.cpp.
    """
    return Cost(flops=float(flops * tensor.numel()))


@handles("native_layer_norm")
def _layer_norm(call: Call) -> list[Launch]:
    source = call["input"]
    return [
        Launch(
            call.name,
            read(source, call["weight"], call["bias"]) + write(*call.made),
            _each(source, 8),
        )
    ]


@handles("native_layer_norm_backward")
def _layer_norm_backward(call: Call) -> list[Launch]:
    gradient, source, mean, rstd = call["grad_out"], call["input"], call["mean"], call["rstd"]
    made = list(call.made)
    done = []
    if call["output_mask"][0]:
        uses = read(gradient, source, mean, rstd, call["weight"]) + write(made.pop(0))
        done.append(Launch("layer_norm_grad_input", uses, _each(source, 12)))
    if made:
        done.append(Launch("GammaBetaBackward", read(gradient, source, mean, rstd) + write(*made)))
    return done


@handles("native_batch_norm", "cudnn_batch_norm", "_native_batch_norm_legit")
def _batch_norm(call: Call) -> list[Launch]:  # Normalization.cuh
    source, made = call["input"], list(call.made)
    scale = read(call["weight"], call["bias"])
    if not call["training"]:
        uses = read(source, call["running_mean"], call["running_var"]) + scale + write(made[0])
        return [Launch("batch_norm_transform", uses, _each(source, 4))]
    statistics = write(*made[1:]) + update(call["running_mean"], call["running_var"])
    return [
        Launch("batch_norm_collect_statistics", read(source) + statistics, _each(source, 5)),
        Launch(
            "batch_norm_transform",
            read(source, *made[1:]) + scale + write(made[0]),
            _each(source, 4),
        ),
    ]


@handles("native_batch_norm_backward")
def _batch_norm_backward(call: Call) -> list[Launch]:
    gradient, source, made = call["grad_out"], call["input"], list(call.made)
    statistics = read(call["save_mean"], call["save_invstd"])
    sums = Scratch("sums", 2 * 4 * source.shape[1])
    return [
        Launch(
            "batch_norm_backward_reduce",
            read(gradient, source) + statistics + write(sums, *made[1:]),
            _each(source, 5),
        ),
        Launch(
            "batch_norm_backward_elemt",
            read(gradient, source, sums, call["weight"]) + statistics + write(made[0]),
            _each(source, 6),
        ),
    ]


@handles("native_group_norm")
def _group_norm(call: Call) -> list[Launch]:  # group_norm_kernel.cu
    source, (out, mean, rstd) = call["input"], call.made
    factors = Scratch("factors", 2 * 4 * int(call["N"]) * int(call["C"]))
    return [
        Launch("RowwiseMoments", read(source) + write(mean, rstd)),
        Launch(
            "ComputeFusedParams", read(mean, rstd, call["weight"], call["bias"]) + write(factors)
        ),
        Launch("group_norm", read(source, factors) + write(out)),
    ]


@handles("native_group_norm_backward")
def _group_norm_backward(call: Call) -> list[Launch]:
    gradient, source, mean, rstd = call["grad_out"], call["input"], call["mean"], call["rstd"]
    made, sums = list(call.made), Scratch("sums", 5 * 4 * int(call["N"]) * int(call["C"]))
    done = [
        Launch("ComputeInternalGradients", read(gradient, source) + write(sums), _each(source, 3))
    ]
    if call["output_mask"][0]:
        done.append(
            Launch("ComputeBackwardFusedParams", read(mean, rstd, call["weight"]) + update(sums))
        )
        done.append(
            Launch("group_norm_backward", read(gradient, source, sums) + write(made.pop(0)))
        )
    if made:
        done.append(Launch("GammaBetaBackward", read(sums, mean, rstd) + write(*made)))
    return done
