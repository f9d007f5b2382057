"""Copies inside the device."""

from __future__ import annotations

from typing import Any

from deepum.capture.launch import Launch, read, span, write
from deepum.capture.operators.call import Call, handles


def _is_memcpy(to: Any, source: Any) -> bool:
    dense = all(tensor.is_contiguous() for tensor in (to, source)) or (
        to.stride() == source.stride() and span(to) == to.numel() * to.itemsize
    )
    return bool(dense and to.dtype == source.dtype and to.shape == source.shape)


@handles("copy_")
def _copy(call: Call) -> list[Launch]:
    to, source = call["self"], call["src"]
    return [Launch("copy", read(source) + write(to), memcpy=_is_memcpy(to, source))]


@handles("clone", "_to_copy", "contiguous", "_clone_dim_order")
def _clone(call: Call) -> list[Launch]:
    source = call["self"]
    (to,) = call.made
    return [Launch("copy", read(source) + write(to), memcpy=_is_memcpy(to, source))]
