"""What the kernels of one call of an operator only read."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any

import torch

from deepum.pytorch.arguments import storage_or_none
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

_IS_ON = {"cuda": attrgetter("is_cuda"), "cpu": attrgetter("is_cpu")}

Range = tuple[int, int]  # addresses: of the first byte, and of the one behind the last
Reads = Callable[["ReadingOperator", Sequence[Any], Mapping[str, Any]], "array[int]"]


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
    is_there = _IS_ON[device]
    changed_places = operator.changed
    if operator.running is not None:
        changed_places += operator.running_statistics(tuple(args))
    read: list[Range] = []
    changed: list[Range] = []
    try:
        for place, value in enumerate(args):
            if place in changed_places:
                _collect(value, is_there, 1, changed, is_changed=True)
            else:
                _collect(value, is_there, least, read)
        for name, value in kwargs.items():
            if name in operator.changed_names:
                _collect(value, is_there, 1, changed, is_changed=True)
            else:
                _collect(value, is_there, least, read)
    except UnknownMemoryError:
        return array("Q")
    if len(read) > 1:
        read = sorted(set(read))
    if read and changed:
        read = _apart(read, sorted(changed))
    return array("Q", chain.from_iterable(read))


def _collect(
    value: Any,
    is_there: Callable[[Any], bool],
    least: int,
    found: list[Range],
    *,
    is_changed: bool = False,
) -> None:
    """Adds the storages of an argument's tensors. Raises UnknownMemoryError where one that is
    changed has none of its own, as sparse ones have not.
    """
    if isinstance(value, torch.Tensor):
        if not is_there(value):
            return
        storage = storage_or_none(value)
        if storage is None:
            if is_changed:
                raise UnknownMemoryError
            return
        size = storage.nbytes()
        if size >= least:
            begin = torch._C._data_address(value)
            found.append((begin, begin + size))
    elif isinstance(value, (list, tuple)):
        for one in value:
            _collect(one, is_there, least, found, is_changed=is_changed)


def _apart(read: list[Range], changed: list[Range]) -> list[Range]:
    """Of ranges in order, those without a byte of the others, which are in order, too."""
    begins = [begin for begin, _ in changed]
    ends = list(accumulate((end for _, end in changed), max))
    return [
        (begin, end)
        for begin, end in read
        if (before := bisect_left(begins, end)) == 0 or ends[before - 1] <= begin
    ]
