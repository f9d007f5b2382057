"""Clean copies in whole: the core, the mover's rules and the model. What launches write is learned
from faults, then there are none.

In lock-step: gates end with the first advice that is given in order.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

import pytest
from small import MIB

from deepum.core import UM_BLOCK_BYTES, BlockRange, CoreSettings
from deepum.simulate.mode import LOCK_STEP
from deepum.simulate.replay import machine, replay
from deepum.trace import Trace, TraceWriter, work

LAYERS, BLOCKS = 16, 4  # UM blocks of a weight, and of an activation
MEMORY = 192 * MIB  # of 256 that are used
STEPS = 36  # behind which clean copies are no longer on trial
QUEUE = 64  # launches that the driver lets the host be ahead
US = 2500.0
IDEAL_NS = LAYERS * (1 + 2 + 1) * US * 1e3
OLDEST_LAST_USE, FURTHEST_NEXT_USE = 1, 2
REMOTE, ALL = 1, 3


@dataclass(frozen=True)
class Step:
    """The last of a run: ns, and what the model and the core counted in it, bytes and faults."""

    ns: float
    faults: float
    demand: float
    h2d: float
    d2h: float


@cache
def training(waits: bool) -> Trace:
    """Weights are read forward and backward and written once; activations are written forward and
    read backward, and stay. The events do not tell reads from writes.
    """
    writer = TraceWriter()
    writer.device(MEMORY // UM_BLOCK_BYTES)
    for slot in (0, 1):
        writer.allocate(slot, LAYERS * BLOCKS)

    def launch(
        kernel: int,
        us: float,
        reads: tuple[BlockRange, ...],
        writes: tuple[BlockRange, ...],
        ends_step: bool = False,
    ) -> None:
        touched = tuple(dict.fromkeys((*reads, *writes)))
        accesses = [
            work.Access(
                r.slot,
                work.READ * (r in reads) | work.WRITE * (r in writes),
                r.first * UM_BLOCK_BYTES,
                r.count * UM_BLOCK_BYTES,
            )
            for r in touched
        ]
        writer.launch(kernel, touched, accesses, us * 1e3, ends_step=ends_step)

    weights, activations = (
        [BlockRange(slot, layer * BLOCKS, BLOCKS) for layer in range(LAYERS)] for slot in (0, 1)
    )
    for _ in range(STEPS):
        for layer in range(LAYERS):
            before = (activations[layer - 1],) if layer else ()
            launch(100 + layer, US, (weights[layer], *before), (activations[layer],))
        for layer in reversed(range(LAYERS)):
            launch(200 + layer, 2 * US, (weights[layer], activations[layer]), ())
        for layer in range(LAYERS):
            launch(
                300 + layer, US, (weights[layer],), (weights[layer],), ends_step=layer == LAYERS - 1
            )
        if waits:
            writer.synchronise()
    return writer.trace("training")


@cache
def steps(advice: int, order: int, waits: bool = False, observe: bool = True) -> tuple[Step, ...]:
    settings = CoreSettings.default(advice=advice, eviction_order=order, launch_queue=QUEUE)
    outcome = replay(
        training(waits),
        machine("v100-16gb", launch_queue=QUEUE),
        settings,
        MEMORY,
        observe_faults=observe,
        mode=LOCK_STEP,
    )
    ends = [mark for mark in outcome.marks if mark.kind == "step"]
    made = []
    for before, after in itertools.pairwise(ends):
        change = {name: after.counters[name] - before.counters[name] for name in after.counters}
        made.append(
            Step(
                after.ns - before.ns,
                change["faults"],
                change["bytes_demand"],
                change["bytes_h2d"],
                change["bytes_d2h"],
            )
        )
    return tuple(made)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("order", [OLDEST_LAST_USE, FURTHEST_NEXT_USE])
def test_once_learned_nothing_faults(order: int, waits: bool) -> None:
    learned, plain = steps(ALL, order, waits), steps(REMOTE, OLDEST_LAST_USE, waits)
    assert any(step.faults for step in learned[1:]), "which launches write was not known"
    for step in learned[-4:]:
        assert (step.faults, step.demand) == (0, 0), "no launch finds less than it needs"
        assert IDEAL_NS - 1 < step.ns <= 1.02 * plain[-1].ns


def test_where_faults_are_not_observed_nothing_is_duplicated() -> None:
    assert steps(ALL, OLDEST_LAST_USE, observe=False) == steps(
        REMOTE, OLDEST_LAST_USE, observe=False
    )
