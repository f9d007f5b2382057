"""Random patterns, and the least stall of one found by going through all states (no solver)."""

from __future__ import annotations

import itertools
import random

import numpy as np
import numpy.typing as npt

from deepum.planners import Link
from deepum.planners.ilp.pattern import Access, Pattern, Tensor

_Floats = npt.NDArray[np.float64]
NAMES = ("swap-in", "swap-out", "clean-copy", "stay-clean", "stay-dirty", "out")
# What a tensor may have been at the operation before, written down anew.
BEFORE = {
    "swap-in": {"out", "swap-out"},
    "swap-out": {"stay-dirty"},
    "clean-copy": {"stay-dirty"},
    "stay-clean": {"stay-clean", "swap-in", "clean-copy"},
    "stay-dirty": {"stay-dirty", "stay-clean", "swap-in", "clean-copy"},
    "out": {"out", "swap-out", "stay-clean", "clean-copy"},
}


def random_pattern(seed: int, operations: int = 6, tensors: int = 3) -> Pattern:
    """Of which not all fits."""
    chance = random.Random(seed)
    made = []
    for _ in range(tensors):
        at = sorted(chance.sample(range(operations), chance.randint(1, 2)))
        accesses = {operation: chance.choice(list(Access)) for operation in at}
        made.append(Tensor(chance.randint(20, 60), accesses))
    total = sum(one.bytes for one in made)
    link = Link(chance.randint(total * 55 // 100, total - 1), 1.0, chance.choice((0.5, 1.0)))
    durations = tuple(float(chance.randint(0, 50)) for _ in range(operations))
    return Pattern(durations, tuple(made), link)


def overwritten_next(pattern: Pattern, tensor: int, operation: int) -> bool:
    """Whether the next access, at the operation or behind it, overwrites; none is at it."""
    accesses = pattern.tensors[tensor].accesses
    if operation in accesses:
        return False
    after = ((operation + i) % len(pattern) for i in range(1, len(pattern) + 1))
    return next(accesses[at] for at in after if at in accesses) is Access.OVERWRITE


def least_stall(pattern: Pattern, own_sums: bool, drops_dirty: bool) -> float:
    """Over all sequences of states that come back to where they began; infinite without one."""
    joint = list(itertools.product(NAMES, repeat=len(pattern.tensors)))
    paths: _Floats | None = None
    for operation in range(len(pattern)):
        costs = np.array([_cost(pattern, operation, one, own_sums, drops_dirty) for one in joint])
        steps: _Floats = _steps(pattern, 0, operation, drops_dirty)
        for tensor in range(1, len(pattern.tensors)):
            more = _steps(pattern, tensor, operation, drops_dirty)
            steps = np.asarray(np.kron(steps, more), dtype=np.float64)
        step = np.where(steps > 0, costs[None, :], np.inf)
        if paths is None:
            paths = step
        else:
            paths = np.array([np.min(row[:, None] + step, axis=0) for row in paths])
    assert paths is not None
    return float(np.diag(paths).min())


def _steps(pattern: Pattern, tensor: int, operation: int, drops_dirty: bool) -> _Floats:
    """1 where the state (column) may follow another (row)."""
    allowed = {now: set(before) for now, before in BEFORE.items()}
    if drops_dirty and overwritten_next(pattern, tensor, operation):
        allowed["out"].add("stay-dirty")
    return np.array([[float(a in allowed[b]) for b in NAMES] for a in NAMES])


def _cost(
    pattern: Pattern, operation: int, states: tuple[str, ...], own_sums: bool, drops_dirty: bool
) -> float:
    """What the operation waits for with these states; infinite where they cannot be."""
    inward = outward = held = 0.0
    for tensor, state in enumerate(states):
        access = pattern.tensors[tensor].accesses.get(operation)
        if (access is Access.READ and state not in ("stay-clean", "stay-dirty")) or (
            access is not None and access.writes and state != "stay-dirty"
        ):
            return float("inf")
        held += pattern.tensors[tensor].bytes if state != "out" else 0
        free = drops_dirty and overwritten_next(pattern, tensor, operation)
        inward += pattern.in_ns(tensor) if state == "swap-in" and not free else 0.0
        outward += pattern.out_ns(tensor) if state in ("swap-out", "clean-copy") else 0.0
    if held > pattern.link.memory_bytes:
        return float("inf")
    took = max(inward, outward) if own_sums else inward + outward
    return max(0.0, took - pattern.durations_ns[operation])
