"""The lower bound with what the driver's prefetches cost: each direction as slow as a block's
handling makes it, both together no quicker than a transfer that slows the other; and no policy that
prefetches is below it.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from keeping import random_program
from small import MIB

from deepum.core import UM_BLOCK_BYTES
from deepum.simulate import bound
from deepum.simulate.bound import Handling, Link, Use, Work
from deepum.simulate.comparison import compare
from deepum.simulate.driver import BAND, Driver
from deepum.simulate.policies import BY_NAME
from deepum.simulate.preset import preset_of
from deepum.simulate.relaxation import linear_bound_ns
from deepum.simulate.workload import Workload
from deepum.trace import Trace

BLOCK_NS = 2.0 * MIB / 16  # of a block, at 16 bytes/ns
PREFETCHING = [BY_NAME[name] for name in ("deepum", "deepum-last-use", "planned")]


def swapped(pieces: int, times: int = 2) -> list[Work]:
    """Pieces of a block each are changed one after the other, so many times."""
    return [
        Work(0.0, (Use(number % pieces, UM_BLOCK_BYTES, True, True),))
        for number in range(times * pieces)
    ]


def of(
    works: list[Work], handling: Handling, in_gbps: float = 16.0, out_gbps: float = 16.0
) -> float:
    link = Link(UM_BLOCK_BYTES, in_gbps, out_gbps, kept=True, handling=handling)
    return bound.bound(works, link).ns


def test_a_block_takes_its_handling_besides() -> None:
    works = swapped(8)
    assert of(works, Handling(0.5 * BLOCK_NS, 1.0)) == pytest.approx(1.5 * of(works, Handling()))


def test_both_directions_take_as_long_as_the_slowed_one_lets_them() -> None:
    """One runs at its pace, the other at half of it: two blocks in and out in the time of 4/3."""
    works = swapped(16, 10)
    alone = of(works, Handling(), out_gbps=1e6)
    assert of(works, Handling(0.0, 2.0), out_gbps=1e6) < 1.01 * alone, "next to nothing crosses out"
    assert of(works, Handling(0.0, 2.0)) == pytest.approx(4 / 3 * of(works, Handling()), rel=0.05)
    # Handling is not slowed.
    half = of(works, Handling(BLOCK_NS, 2.0)) / of(works, Handling(BLOCK_NS, 1.0))
    assert half == pytest.approx(2 / (1 + 2 / 3), rel=0.05)


def test_a_driver_that_costs_nothing_changes_nothing() -> None:
    random = Random(1)
    for _ in range(20):
        in_gbps, out_gbps = random.uniform(1, 60), random.uniform(1, 60)
        assert Handling().rate(in_gbps) == in_gbps
        assert Handling().together(in_gbps, out_gbps) == 2


def test_what_a_block_costs_is_known_of_each_driver() -> None:
    preset = preset_of("v100-16gb")
    assert Driver().handling(preset) == Handling(preset.block_ns, preset.both_ways)
    assert BAND["kind"].handling(preset) == Handling()
    assert BAND["expected"].handling(preset) == Handling(11e3, 1.1)


def test_the_bound_of_plans_knows_what_a_block_costs() -> None:
    """Eight pieces are changed in turn where four have room, next to nothing is computed."""
    works = [replace(work, ns=1e4) for work in swapped(8)]
    preset = preset_of("v100-16gb")
    workload = Workload("swapped", Trace("swapped", b""), "v100-16gb", works)

    def least(handling: Handling) -> float:
        ns = linear_bound_ns(workload, "v100-16gb", 4 * UM_BLOCK_BYTES, handling)
        assert ns is not None
        return ns

    copy_ns = UM_BLOCK_BYTES / preset.h2d_gbps
    free = least(Handling())
    assert least(Handling(0.5 * copy_ns, 1.0)) == pytest.approx(1.5 * free, rel=0.05)
    assert least(Handling(0.0, 2.0)) == pytest.approx(4 / 3 * free, rel=0.05)


@pytest.mark.parametrize("costs", ["expected", "unkind"])
def test_no_policy_that_prefetches_is_below_it(costs: str) -> None:
    above = 0
    for seed in range(8):
        compared = compare(
            Workload("random", random_program(seed), "v100-16gb"),
            "v100-16gb",
            PREFETCHING,
            (24 + 24 * (seed % 3)) * MIB,
            driver=BAND[costs],
        )
        assert compared.driver_bound_ns is not None and compared.kept_bound_ns is not None
        assert compared.driver_bound_ns >= compared.kept_bound_ns
        above += compared.driver_bound_ns > compared.kept_bound_ns
        for policy in PREFETCHING:
            row = compared.rows[policy.name]
            assert row.does_not_fit is not None or row.ns >= compared.driver_bound_ns * (1 - 1e-9)
    assert above, "it says more than the one without"
