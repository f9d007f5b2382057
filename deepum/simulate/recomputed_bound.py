"""A lower bound for programs that may compute content again, whoever decides what is moved, what
is dropped, and when; of what a step makes, not of what outlives it.

Let `C` be the launches' own time between two points of the program, and `m` what its transfers take
at least while nothing is computed again (deepum.simulate.bound, without launches' times). A
*stretch* is content between two uses in a row, behind a launch that made it. Whoever keeps it
somewhere pays what `m` counts; who drops it saves at most that it leaves and comes back, `s`, and
launches again what made it, for at least `c`: the launches of its recipe, each shared among what it
makes, by bytes. What they read, and that it may be gone, is left out, which only lowers the bound.
With `D`, the stretches that are dropped, the time `T` is at least

    T >= C + sum of c over D,    T >= m - sum of s over D

hence, for each a from 0 to 1,

    T >= (1 - a) C + a m + sum over D of ((1 - a) c - a s)
      >= (1 - a) C + a m - sum over all stretches of max(0, a s - (1 - a) c)

and the bound is the greatest of these. A stretch takes nothing off `m` where it spans no gap of the
bound's at which more is alive than the card holds. tests/recomputation/test_bound.py compares it
with the best of all schedules of small programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from deepum.recomputation.contents import Item, Operation, Storage
from deepum.simulate import bound

_WEIGHTS = 100  # values of `a`


@dataclass(frozen=True)
class Stretch:
    """From behind the launch of number `first` up to the one of number `last`; what it takes to
    make the content again, at least.
    """

    first: int
    last: int
    bytes: int
    ns: float


def stretches(items: Iterable[Item]) -> list[Stretch]:
    """Those of a program; launches and copies are numbered together, from 0."""
    found: list[Stretch] = []
    used: dict[Storage, int] = {}
    number = -1
    for item in items:
        if not isinstance(item, Operation):
            continue
        number += 1
        for use in item.uses:
            storage = use.storage
            if use.reads is not None and use.reads > 0 and storage.step == item.step:
                recipe = storage.recipe(use.reads)
                if all(one.inputs(storage) is not None for one in recipe):
                    ns = sum(_share(one, storage) for one in recipe)
                    found.append(Stretch(used[storage], number, storage.bytes, ns))
            if use.reads is not None or use.makes is not None:
                used[storage] = number
    return found


def _share(operation: Operation, storage: Storage) -> float:
    made = sum(use.storage.bytes for use in operation.uses if use.makes is not None)
    return operation.ns * storage.bytes / made


def between(
    works: Sequence[bound.Work],
    link: bound.Link,
    first: int,
    last: int,
    droppable: Sequence[Stretch],
    launches: Sequence[int],
) -> float:
    """ns from gap `first` to gap `last`. `launches`: by gap, how many launches and copies come
    before it.
    """
    found = bound.between(works, link, first, last)
    short = bound.live(works, link) > link.memory
    at = np.array(launches)
    gaps_short = np.concatenate([[0], np.cumsum(short)])
    saved, costs = [], []
    begin, end = launches[first], launches[last]
    a_byte = 1 / link.in_gbps + 1 / link.out_gbps
    for one in droppable:
        low, high = np.searchsorted(at, [one.first, one.last], side="right")
        if one.last < begin or one.first >= end or gaps_short[high] == gaps_short[low]:
            continue
        saved.append(one.bytes * a_byte)
        # What is launched again outside is not in the launches' time.
        costs.append(one.ns if begin <= one.first and one.last < end else 0.0)
    gains, prices = np.array(saved), np.array(costs)
    best = 0.0
    for weight in np.linspace(0, 1, _WEIGHTS + 1):
        lost = np.maximum(0.0, weight * gains - (1 - weight) * prices).sum()
        best = max(
            best, float((1 - weight) * found.compute_ns + weight * found.transfers_ns - lost)
        )
    return best
