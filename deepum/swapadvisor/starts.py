"""What the search begins with: the program's order in pools as frameworks make them, and random
individuals.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepum.swapadvisor.allocation import Allocation, Sizes, averaged
from deepum.swapadvisor.engine import Engine, Outcome
from deepum.swapadvisor.graph import Graph, Schedule

# A size joins the class below if it is less than that much larger than the smallest in it.
_WIDTHS = (1.0, 1.25, 1.5, 2.0, 4.0, 8.0, 16.0, 64.0, float("inf"))


def widths(sizes: Sizes) -> Iterator[tuple[int, ...]]:
    """CLS of pools from the finest, a class for each size, to the coarsest, one for all, and the
    one that needs the least memory; each once.
    """
    pools = set()
    for width in _WIDTHS:
        classes: list[int] = []
        smallest = 0.0
        for size in sizes.sizes.tolist():
            if not classes or size >= width * smallest:
                classes.append(classes[-1] + 1 if classes else 1)
                smallest = size
            else:
                classes.append(classes[-1])
        if tuple(classes) not in pools:
            pools.add(tuple(classes))
            yield tuple(classes)
    if (leanest := sizes.leanest()[0]) not in pools:
        yield leanest


def peaks(graph: Graph, sizes: Sizes, schedule: Schedule) -> list[int]:
    """By size, the most tensors of it that are alive at once, parameters at all times."""
    alive = np.zeros(len(sizes.sizes), dtype=np.int64)
    most = np.zeros_like(alive)
    left = np.zeros(len(graph.tensors), dtype=np.int64)
    for operator in graph.operators:
        for use in operator.uses:
            left[use.tensor] += 1
    begun = np.array([tensor.starts for tensor in graph.tensors])
    np.add.at(alive, sizes.of_tensor[begun & (left > 0)], 1)
    for operator in schedule.tolist():
        for use in graph.operators[operator].uses:
            size = sizes.of_tensor[use.tensor]
            alive[size] += not begun[use.tensor]
            begun[use.tensor] = True
            most[size] = max(most[size], alive[size])
        for use in graph.operators[operator].uses:
            left[use.tensor] -= 1
            if left[use.tensor] == 0 and not graph.tensors[use.tensor].stays:
                alive[sizes.of_tensor[use.tensor]] -= 1
    return [max(int(one), 1) for one in most]


def in_proportion(sizes: Sizes, classes: tuple[int, ...], wanted: list[int]) -> Allocation:
    """A pool of these classes: each has what some operator needs, and of what it would have beyond
    that with enough memory the part that fits.
    """
    of_class = np.asarray(classes) - 1
    full = np.bincount(of_class, weights=np.asarray(wanted)).astype(np.int64)
    size, least = sizes.class_bytes(classes), sizes.least(classes)
    beyond = np.maximum(full - least, 0)
    rest = sizes.memory_bytes - int(size @ least)
    share = min(1.0, max(0.0, rest / max(int(size @ beyond), 1)))
    counts = least + np.floor(share * beyond).astype(np.int64)
    for one in range(len(size) - 1, -1, -1):  # what rounding has left, to large objects first
        rest = sizes.memory_bytes - int(size @ counts)
        counts[one] += min(max(0, rest // int(size[one])), max(0, int(full[one] - counts[one])))
    return sizes.repaired(classes, counts.tolist())


def defaults(engine: Engine) -> list[Allocation]:
    """Pools for the program's order, those that can run, as `widths` has them: none where there is
    none at all.
    """
    wanted = peaks(engine.graph, engine.sizes, engine.graph.program)
    made = [in_proportion(engine.sizes, classes, wanted) for classes in widths(engine.sizes)]
    return [allocation for allocation in made if engine.sizes.runs(allocation)]


def default(engine: Engine) -> tuple[Allocation, Outcome] | None:
    """What a framework does without a search: the program's order, in the finest pool that can
    run, a class for each size if there is memory for it. None where no pool can.
    """
    for allocation in defaults(engine):
        outcome = engine.evaluate(engine.graph.program, allocation)
        if outcome.ns < float("inf"):
            return allocation, outcome
    return None


def random_allocation(engine: Engine, wanted: list[int], random: np.random.Generator) -> Allocation:
    """Classes cut at random, objects by what is alive, each count up to twice that or down to
    nothing.
    """
    cuts = random.random(len(engine.sizes.sizes) - 1) < random.random()
    classes = (1, *(1 + np.cumsum(cuts)).tolist())
    base = in_proportion(engine.sizes, classes, wanted)
    drawn = np.asarray(base.counts) * random.uniform(0.0, 2.0, len(base.counts))
    return engine.sizes.repaired(classes, averaged(range(1, len(drawn) + 1), drawn.tolist()))
