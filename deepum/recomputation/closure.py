"""What has to be computed again so that a version of a storage is there."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from deepum.recomputation.contents import Storage

Content = tuple[Storage, int]


@dataclass(frozen=True, slots=True)
class Closure:
    """`makes`: contents that are not there, each behind those that it is made of, and their
    launches' time together, ns; `needs`: contents that have to be there, and are.
    """

    makes: tuple[Content, ...]
    needs: frozenset[Content]
    ns: int


def closure(
    content: Content,
    there: Callable[[Content], bool],
    most: int,
    most_ns: float = math.inf,
) -> Closure | None:
    """Of a content that is to be made. `most`: contents that may be made for it, itself included;
    `most_ns`: that its launches may take together. None where it cannot be made, or would take
    more.
    """
    makes: list[Content] = []
    needs: set[Content] = set()
    known: set[Content] = {content}
    total = 0
    stack: list[tuple[Content, list[Content]]] = []

    def begin(one: Content) -> bool:
        nonlocal total
        storage, version = one
        inputs: list[Content] = []
        for operation in storage.recipe(version):
            needed = operation.inputs(storage)
            if needed is None:
                return False
            inputs += needed
            total += operation.ns
        if total > most_ns:
            return False
        stack.append((one, inputs))
        return len(stack) + len(makes) <= most

    if not begin(content):
        return None
    while stack:
        one, inputs = stack[-1]
        if not inputs:
            makes.append(one)
            stack.pop()
            continue
        needed = inputs.pop()
        if needed in known:
            continue
        if there(needed):
            needs.add(needed)
            continue
        known.add(needed)
        if not begin(needed):
            return None
    return Closure(tuple(makes), frozenset(needs), total)
