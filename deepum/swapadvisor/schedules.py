"""Schedules as chromosomes (section 5.2): crossover by a cut. Their mutation is the engine's."""

from __future__ import annotations

import numpy as np

from deepum.swapadvisor.graph import Schedule


def crossed(one: Schedule, other: Schedule, cut: int) -> tuple[Schedule, Schedule]:
    """Both children: the first has `other`'s first `cut` operators, and the missing ones in `one`'s
    order; the second the reverse. Both are topological orders where the parents are.
    """

    def child(head: Schedule, rest: Schedule) -> Schedule:
        missing = np.ones(len(rest), dtype=np.bool_)
        missing[head[:cut]] = False
        return np.concatenate([head[:cut], rest[missing[rest]]])

    return child(other, one), child(one, other)
