"""Memory that a program takes and gives back in stream order (cuMemAllocAsync, pools), with more of
it than the card has.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from finished_run import MIB, Ran


@pytest.mark.parametrize(
    "how",
    ["cuMemAllocAsync(4 * COUNT, s)", "cuMemAllocFromPoolAsync(4 * COUNT, pool, s)"],
    ids=["default", "pool"],
)
def test_it_is_right_and_fetched(driver: Callable[..., Ran], how: str) -> None:
    ran = driver(
        ["--gpu-memory", "256MiB"],
        f"""
        context_of(0)
        m, s = Module(), stream()
        made = d.CUmemPoolProps()
        made.allocType = d.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        made.location.type = d.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        pool = ck(d.cuMemPoolCreate(made))
        kept = [ck(d.{how}) for _ in range(20)]
        for k, pointer in enumerate(kept):
            ck(m.set(s, pointer, COUNT, k))
        for _ in range(ROUNDS):
            for k, pointer in enumerate(kept):
                passing = ck(d.{how})  # the same memory again and again
                ck(m.add(s, pointer, pointer, passing, COUNT))
                ck(m.add(s, passing, kept[0], pointer, COUNT))  # array 0 is zeros
                ck(d.cuMemFreeAsync(passing, s))
            ck(d.cuStreamSynchronize(s))
        for k, pointer in enumerate(kept):
            assert (get(pointer, COUNT) == k * 2.0**ROUNDS).all(), k
            ck(d.cuMemFreeAsync(pointer, s))
        ck(d.cuStreamSynchronize(s))
        """,
    )
    assert ran.simulated["peak_managed_bytes"] == 21 * 20 * MIB
    assert ran.simulated["peak_resident_bytes"] <= 256 * MIB
    assert ran.statistics["prefetch_coverage"] > 0.9
