"""A host whose memory has a size: what is pinned there and what managed memory needs of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Script = Callable[..., Any]
GIB = 1 << 30


def test_managed_memory_is_what_host_and_card_hold_together(script: Script) -> None:
    script(
        """
        GIB = 1 << 30
        first = ck(d.cuMemAllocManaged(5 * GIB, 1))
        assert error(d.cuMemAllocManaged(2 * GIB, 1)) == "OUT_OF_MEMORY"
        second = ck(d.cuMemAllocManaged(1 * GIB, 1))
        assert error(d.cuMemAlloc(2 * MIB)) == "OUT_OF_MEMORY", "the card's memory is promised"
        assert error(d.cuMemHostAlloc(2 * MIB, 0)) == "OUT_OF_MEMORY"
        ck(d.cuMemFree(second))
        plain = ck(d.cuMemAlloc(1 * GIB))
        assert error(d.cuMemAllocManaged(2 * MIB, 1)) == "OUT_OF_MEMORY"
        ck(d.cuMemFree(plain))
        pinned = ck(d.cuMemHostAlloc(1 * GIB, 0))
        assert error(d.cuMemAllocManaged(2 * MIB, 1)) == "OUT_OF_MEMORY"
        ck(d.cuMemFreeHost(pinned))
        ck(d.cuMemAllocManaged(1 * GIB, 1))
        """,
        env={"DEEPUM_SIM_MEMORY": str(2 * GIB), "DEEPUM_SIM_HOST_MEMORY": str(4 * GIB)},
    )


def test_registered_memory_is_pinned_until_it_is_not(script: Script) -> None:
    script(
        """
        own = np.zeros(48 * MIB, np.uint8)
        ck(d.cuMemHostRegister(own.ctypes.data, own.nbytes, 0))
        assert error(d.cuMemHostAlloc(32 * MIB, 0)) == "OUT_OF_MEMORY"
        ck(d.cuMemHostUnregister(own.ctypes.data))
        ck(d.cuMemHostAlloc(32 * MIB, 0))
        """,
        env={"DEEPUM_SIM_HOST_MEMORY": str(64 << 20)},
    )


def test_with_a_disk_behind_it_there_is_no_end_and_statistics_say_what_went_there(
    script: Script,
) -> None:
    ran = script(
        """
        array = ck(d.cuMemAllocManaged(256 * MIB, 1))
        for _ in range(2):
            ck(d.cuMemsetD8(array, 1, 256 * MIB))
            ck(d.cuCtxSynchronize())
        assert error(d.cuMemHostAlloc(96 * MIB, 0)) == "OUT_OF_MEMORY"
        """,
        env={
            "DEEPUM_SIM_MACHINE": "a100-40gb-g10-ssd",
            "DEEPUM_SIM_MEMORY": str(64 << 20),
            "DEEPUM_SIM_HOST_MEMORY": str(64 << 20),
        },
    )
    statistics = ran.statistics[0]
    assert 0 < statistics["host_bytes"] <= statistics["peak_host_bytes"] <= 64 << 20
    assert statistics["bytes_disk_written"] >= 128 << 20
    assert statistics["bytes_disk_read"] > 0


def test_a_size_that_cannot_be_is_refused(script: Script) -> None:
    ran = script(
        'assert error(d.cuInit(0)) == "INVALID_VALUE"',
        bare=True,
        env={"DEEPUM_SIM_HOST_MEMORY": "much"},
    )
    assert "DEEPUM_SIM_HOST_MEMORY=much: not usable" in ran.err
