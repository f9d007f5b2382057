"""One call of an operator, and what is true of operators without an entry of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deepum.capture.launch import Launch, Pieces, Use, write
from deepum.capture.tiles import of_tensors
from deepum.trace.work import READ, WRITE, Cost


@dataclass
class Call:
    """One operator as it was called. Arguments by name; tensors of the device that it reads,
    changes, and makes.

    `rows(indices, table, row_bytes, count)`: the places that those indices pick. `same_rows(to,
    indices)`: what is made holds the same indices. `backward`: autograd calls it.
    """

    name: str
    arguments: Mapping[str, Any]
    inputs: Sequence[Any]
    changed: Sequence[Any]
    made: Sequence[Any]
    multiprocessors: int
    rows: Callable[..., Pieces]
    same_rows: Callable[[Any, Any], None]
    backward: bool = False

    def __getitem__(self, name: str) -> Any:
        return self.arguments.get(name)

    def cost(self, m: int, n: int, k: int, batches: int, tensor: Any) -> Cost:
        """Of a matrix product."""
        return of_tensors(m, n, k, batches, tensor, self.multiprocessors)


Handler = Callable[[Call], list[Launch]]
HANDLERS: dict[str, Handler] = {}
# What they change they do not look at.
_OVERWRITE = {"fill_", "zero_", "copy_", "bernoulli_"}


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Enters a function for operators of those names."""

    def keep(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return keep


def one_kernel(call: Call) -> list[Launch]:
    """A kernel that reads its inputs, changes what it changes, and writes what it makes."""
    changed = {id(tensor) for tensor in call.changed}
    flags = WRITE if call.name in _OVERWRITE else READ | WRITE
    uses = [Use(tensor, READ) for tensor in call.inputs if id(tensor) not in changed]
    uses += [Use(tensor, flags) for tensor in call.changed]
    uses += write(*call.made)
    return [Launch(call.name, uses)]
