"""Lists of tensors: foreach operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deepum.capture import foreach
from deepum.capture.launch import Launch, Use
from deepum.capture.operators.call import Call
from deepum.trace.work import READ, WRITE


def _lists(call: Call) -> list[list[Any]]:
    return [
        list(value)
        for value in call.arguments.values()
        if isinstance(value, (list, tuple)) and value and hasattr(value[0], "numel")
    ]


@dataclass(frozen=True)
class _Part:
    offset: int
    bytes: int

    def at(self, _step: int) -> Sequence[tuple[int, int]]:
        return ((self.offset, self.bytes),)


def of_lists(call: Call) -> list[Launch]:
    """One launch for as many tensors as fit."""
    lists = [(tensors, READ) for tensors in _lists(call)]
    if call.made:  # a new list, or one number for each tensor (norms)
        lists.append((list(call.made), WRITE))
    else:
        lists[0] = (
            lists[0][0],
            WRITE if call.name in ("_foreach_copy_", "_foreach_zero_") else READ | WRITE,
        )
    sizes = [tensor.numel() for tensor in lists[0][0]]
    scalars = any(
        isinstance(call[name], (list, tuple)) and not hasattr(call[name][0], "numel")
        for name in ("scalars",)
        if call[name]
    )
    done = []
    for part in foreach.parts(sizes, len(lists), scalars):
        uses = []
        for number, first, count in part:
            for tensors, flags in lists:
                tensor = tensors[number]
                whole = tensor.numel() != sizes[number] or count == sizes[number]
                place = None if whole else _Part(first * tensor.itemsize, count * tensor.itemsize)
                uses.append(Use(tensor, flags, place))
        done.append(Launch(call.name, uses))
    return done
