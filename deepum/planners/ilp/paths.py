"""Schedules of the thesis's form, tensor by tensor: what becomes of one, all others staying as they
are, is a shortest path through its six states at each operation, round the pattern.

A tensor moves at most once at an operation, so that what a state adds to the operation's stall is
known, and the path is the best there is for that tensor. From where no path gets better, some
tensors are sent other ways at random, and all get the best paths again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from deepum.planners.ilp.pattern import Access, Pattern
from deepum.planners.ilp.program import MEMORY_UNITS
from deepum.planners.ilp.thesis import AS_WRITTEN, BEFORE, Form, State, overwritten
from deepum.planners.linear_program import Floats
from deepum.planners.planner import Limits

_STATES = tuple(State)
_NUMBER = {state: number for number, state in enumerate(_STATES)}
_OUTWARD = [_NUMBER[State.SWAP_OUT], _NUMBER[State.CLEAN_COPY]]
_INWARD, _OUT, _DIRTY = (_NUMBER[one] for one in (State.SWAP_IN, State.OUT, State.STAY_DIRTY))
_HELD = [number for number in range(len(_STATES)) if number != _OUT]
_WORSE = 0.06  # part by which a schedule that is gone on from may be worse than the one before
_IDLE_PRICE = 1e-4  # of a transfer that nothing waits for, as a part of its time: rather none


Numbers = npt.NDArray[np.int64]


class Paths:
    """From a schedule that fits, states by tensor and operation, to better ones."""

    def __init__(
        self, pattern: Pattern, states: Sequence[Sequence[State]], form: Form = AS_WRITTEN
    ) -> None:
        self._pattern, self._own_sums = pattern, form.own_sums
        self._count = len(pattern)
        self._durations = np.array(pattern.durations_ns)
        self._dead = [one.dead(self._count) for one in pattern.tensors]
        self._dropped = [
            overwritten(pattern, number) if form.drops_dirty else frozenset()
            for number in range(len(pattern.tensors))
        ]
        self._steps = [self._allowed(number) for number in range(len(pattern.tensors))]
        self._held, self._inward, self._outward = (np.zeros(self._count) for _ in range(3))
        self._room = np.array([pattern.room(operation) for operation in range(self._count)])
        self._paths = [np.array([_NUMBER[one] for one in of_tensor]) for of_tensor in states]
        for number in range(len(self._paths)):
            self._count_in(number, 1)

    def stall_ns(self) -> float:
        """What transfers take beyond their operations."""
        return float(self._stalls(self._inward, self._outward).sum())

    def states(self) -> list[list[State]]:
        """By tensor and operation."""
        return [[_STATES[number] for number in path] for path in self._paths]

    def improve(self, limits: Limits) -> Iterator[float]:
        """The stall in ns of each better schedule, until nothing waits or the time is spent."""
        chance = random.Random(limits.seed)
        self._settle(chance, limits)
        now = best = self.stall_ns()
        yield best
        kept = list(self._paths)
        while limits.left > 0 and best > 0:
            before = list(self._paths)
            self._disturb(chance, now / self._count)
            self._settle(chance, limits)
            found = self.stall_ns()
            if found > now * (1 + _WORSE * chance.random()):
                self._take(before)
                continue
            now = found
            if found < best * (1 - 1e-9):
                best, kept = found, list(self._paths)
                yield best
        self._take(kept)

    def _disturb(self, chance: random.Random, price_ns: float) -> None:
        """Sends some tensors, or all, other ways: as if memory had a price at some operations."""
        price = price_ns * MEMORY_UNITS * 10 ** chance.uniform(-1.0, 0.5)
        prices = np.array([price * chance.random() ** 4 for _ in range(self._count)])
        for number in chance.sample(range(len(self._paths)), chance.randint(1, len(self._paths))):
            part = self._pattern.tensors[number].bytes / self._pattern.link.memory_bytes
            self._route(number, prices * part)

    def _settle(self, chance: random.Random, limits: Limits) -> None:
        """Best paths, tensor by tensor, until none gets better."""
        order = list(range(len(self._paths)))
        better = True
        while better and limits.left > 0:
            before = self.stall_ns()
            chance.shuffle(order)
            for number in order:
                self._route(number)
            better = self.stall_ns() < before * (1 - 1e-6)

    def _route(self, number: int, memory_prices: Floats | None = None) -> None:
        """The best path of the tensor, in time of stalls, where memory has a price besides."""
        self._count_in(number, -1)
        costs = self._costs(number)
        if memory_prices is not None:
            costs[:, _HELD] += memory_prices[:, None]
        path = _shortest(costs, self._steps[number])
        self._paths[number] = path if path is not None else self._paths[number]
        self._count_in(number, 1)

    def _take(self, paths: Sequence[Numbers]) -> None:
        for number, path in enumerate(paths):
            self._count_in(number, -1)
            self._paths[number] = path
            self._count_in(number, 1)

    def _stalls(self, inward: Floats, outward: Floats) -> Floats:
        took = np.maximum(inward, outward) if self._own_sums else inward + outward
        return np.asarray(np.maximum(took - self._durations, 0.0), dtype=np.float64)

    def _times(self, number: int) -> tuple[Floats, Floats]:
        """Of a swap-in at each operation, and of a copy to the host."""
        inward = np.full(self._count, self._pattern.in_ns(number))
        inward[list(self._dropped[number])] = 0.0
        return inward, np.full(self._count, self._pattern.out_ns(number))

    def _count_in(self, number: int, sign: int) -> None:
        path = self._paths[number]
        inward, outward = self._times(number)
        self._inward += sign * inward * (path == _INWARD)
        self._outward += sign * outward * np.isin(path, _OUTWARD)
        held = path != _OUT
        held[list(self._dead[number])] = False
        self._held += sign * self._pattern.tensors[number].bytes * held

    def _costs(self, number: int) -> Floats:
        """By operation and state, of a tensor that is not counted in; infinite: not possible."""
        tensor = self._pattern.tensors[number]
        inward, outward = self._times(number)
        costs = np.zeros((self._count, len(_STATES)))
        base = self._stalls(self._inward, self._outward)
        costs[:, _INWARD] = self._stalls(self._inward + inward, self._outward) - base
        costs[:, _INWARD] += _IDLE_PRICE * inward
        out = self._stalls(self._inward, self._outward + outward) - base + _IDLE_PRICE * outward
        costs[:, _OUTWARD] = out[:, None]
        full = np.flatnonzero(self._held + tensor.bytes > self._room)
        costs[np.ix_(full, np.array(_HELD))] = np.inf
        for operation, access in tensor.accesses.items():
            can = {State.STAY_DIRTY} | ({State.STAY_CLEAN} if access is Access.READ else set())
            costs[operation, [_NUMBER[one] for one in State if one not in can]] = np.inf
        for operation in self._dead[number]:
            costs[operation] = np.inf
            costs[operation, _DIRTY] = 0.0
        return costs

    def _allowed(self, number: int) -> Floats:
        """By operation, state before and state: 0, or infinite where it cannot follow."""
        found = np.full((self._count, len(_STATES), len(_STATES)), np.inf)
        for state, earlier in BEFORE.items():
            for one in earlier:
                found[:, _NUMBER[one], _NUMBER[state]] = 0.0
        found[list(self._dropped[number]), _DIRTY, _OUT] = 0.0
        found[list(self._dead[number])] = 0.0
        return found


def _shortest(costs: Floats, steps: Floats) -> Numbers | None:
    """The states of the cheapest path that ends where it begins. None: there is none."""
    count, states = costs.shape
    total = np.full((states, states), np.inf)  # by state of operation 0 and last state
    np.fill_diagonal(total, costs[0])
    came = np.zeros((count, states, states), dtype=np.int64)
    for operation in range(1, count):
        ways = total[:, :, None] + steps[operation]
        came[operation] = ways.argmin(axis=1)
        total = ways.min(axis=1) + costs[operation]
    closed = total + steps[0].T
    first, last = np.unravel_index(int(closed.argmin()), closed.shape)
    if not np.isfinite(closed[first, last]):
        return None
    path = np.empty(count, dtype=np.int64)
    for operation in range(count - 1, -1, -1):
        path[operation] = last
        last = came[operation, first, last]
    return path
