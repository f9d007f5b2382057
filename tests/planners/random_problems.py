"""Random iterations, and what the best plan of all takes."""

from __future__ import annotations

import itertools
import random

import numpy as np

from deepum.planners import Event, Item, Iteration, Link, Problem


def random_problem(
    seed: int, launches: int = 6, items: int = 5, most_gaps: int = 10, memory: int = 120
) -> Problem:
    """Items that live across iterations, and such as begin and end within one."""
    chance = random.Random(seed)
    while True:
        made = []
        for _ in range(items):
            at = sorted(chance.sample(range(launches), chance.randint(1, 3)))
            events = [Event(n, reads=True, writes=chance.random() < 0.4) for n in at]
            if chance.random() < 0.4 and len(at) > 1:  # it begins and ends
                events[0] = Event(at[0], writes=True)
                events.append(Event.death((at[-1] + 1) % launches))
            made.append(Item(chance.randint(20, 100), tuple(sorted(events, key=_order))))
        times = tuple(float(chance.randint(10, 200)) for _ in range(launches))
        link = Link(chance.randint(memory, memory + 100), 1.0, chance.choice((0.8, 1.0)))
        problem = Problem(Iteration(times, tuple(made)), link)
        if 3 <= len(problem) <= most_gaps and problem.belady() is not None:
            return problem


def _order(event: Event) -> tuple[int, bool]:
    return event.launch, not event.dies


def shortest(problem: Problem) -> float:
    """By trying all plans that fit."""
    best = float("inf")
    for bits in itertools.product((0, 1), repeat=len(problem)):
        plan = np.array(bits, dtype=np.uint8)
        if problem.occupancy(plan).max() <= problem.link.memory_bytes:
            best = min(best, problem.replay(plan).ns)
    return best
