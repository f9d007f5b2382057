"""What the kernels of one call of an operator only read."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import torch

from deepum.pytorch.arguments import storage_or_none, tensors_in
from deepum.pytorch.operators import ChangingOperator

# They change what their schemas do not name: recurrent networks what their forward pass saved and
# states of dropout, batch norms over several devices their running statistics.
_CHANGE_UNNAMED = {
    "_cudnn_rnn",
    "_cudnn_rnn_backward",
    "miopen_rnn",
    "miopen_rnn_backward",
    "mkldnn_rnn_layer_backward",
    "batch_norm_gather_stats",
    "batch_norm_gather_stats_with_counts",
    "batch_norm_update_stats",
}
# PyTorch puts smaller tensors together, so that they share UM blocks.
LEAST_BYTES = 1 << 20

Range = tuple[int, int]  # addresses: of the first byte, and of the one behind the last


class ReadingOperator(ChangingOperator):
    """declares: what it does not change, it only reads."""

    __slots__ = ("declares",)

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self.declares = self.is_known and not self.is_view and self.name not in _CHANGE_UNNAMED


class UnknownMemoryError(Exception):
    """An operator changes what has no storage of its own."""


def only_read(
    operator: ReadingOperator,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    device: str = "cuda",
    least: int = LEAST_BYTES,
) -> array[int]:
    """Storages on devices of that type, of at least so many bytes, that the call reads and does not
    change: addresses of begins and ends, in order. What shares bytes with what it changes is left
    out.
    """
    changed_places = {*operator.changed, *operator.running_statistics(tuple(args))}
    read: list[Range] = []
    changed: list[Range] = []
    try:
        for place, value in enumerate(args):
            if place in changed_places:
                changed += _ranges(value, device, 1, is_changed=True)
            else:
                read += _ranges(value, device, least)
        for name, value in kwargs.items():
            if name in operator.changed_names:
                changed += _ranges(value, device, 1, is_changed=True)
            else:
                read += _ranges(value, device, least)
    except UnknownMemoryError:
        return array("Q")
    found = array("Q")
    for one in _apart(sorted(set(read)), sorted(changed)):
        found.extend(one)
    return found


def _ranges(value: Any, device: str, least: int, *, is_changed: bool = False) -> list[Range]:
    found = []
    for tensor in tensors_in(value):
        if tensor.device.type != device:
            continue
        storage = storage_or_none(tensor)
        if storage is None:
            if is_changed:
                raise UnknownMemoryError
            continue
        size = storage.nbytes()
        if size >= least:
            begin = torch._C._data_address(tensor)
            found.append((begin, begin + size))
    return found


def _apart(read: list[Range], changed: list[Range]) -> list[Range]:
    """Of ranges in order, those without a byte of the others, which are in order, too."""
    if not changed:
        return read
    begins = [begin for begin, _ in changed]
    ends = list(accumulate((end for _, end in changed), max))
    return [
        (begin, end)
        for begin, end in read
        if (before := bisect_left(begins, end)) == 0 or ends[before - 1] <= begin
    ]
