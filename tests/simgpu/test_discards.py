"""What the simulated driver makes of discarded memory that is read: an error where it is sure of
it, else a count.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran

Script = Callable[..., Ran]


def uses(ran: Ran) -> tuple[int, int]:
    """Reads of discarded memory, and those of them that are surely errors."""
    (statistics,) = ran.statistics
    return statistics["discarded_uses"], statistics["discarded_uses_sure"]


def test_reading_discarded_memory_is_an_error_that_is_counted(script: Script) -> None:
    ran = script(
        """
        module, s, n = Module(), stream(), 1 << 20
        p = managed(n)
        put(p, np.ones(n))
        ck(d.cuMemDiscardBatchAsync([p], [4 * n], 1, 0, s))
        ck(module.scale(s, p, n, 2.0))
        assert error(d.cuStreamSynchronize(s)) == "ILLEGAL_ADDRESS"
        """
    )
    assert uses(ran) == (1, 1)


def test_a_kernel_that_may_be_given_unwritten_memory_is_not_stopped(script: Script) -> None:
    ran = script(
        """
        module, s, n = Module(), stream(), 1 << 20
        p = managed(n)
        put(p, np.ones(n))
        ck(d.cuMemDiscardBatchAsync([p], [4 * n], 1, 0, s))
        ck(module.read_anything(s, p, n))
        ck(d.cuStreamSynchronize(s))
        """
    )
    assert uses(ran) == (1, 0)


# What PyTorch's allocator reports: handed out, and taken back.
REPORTS = """
report = ctypes.CDLL(os.environ["SIM_CUDART"])._ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
report.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int16]
hand_out = lambda p, n: report(int(p), 4 * n, 0, 0, 1)
take_back = lambda p, n: report(int(p), -4 * n, 0, 0, 1)
module, s, n = Module(), stream(), 1 << 20
p = managed(n)
"""


def test_a_discard_of_memory_that_an_allocator_has_handed_out_is_surely_wrong(
    script: Script, sim: Path
) -> None:
    ran = script(
        f"""{REPORTS}
hand_out(p, n)
ck(module.set(s, p, n, 3.0))
ck(d.cuMemDiscardBatchAsync([p], [4 * n], 1, 0, s))
ck(module.read_anything(s, p, n))
assert error(d.cuStreamSynchronize(s)) == "ILLEGAL_ADDRESS"
""",
        env={"SIM_CUDART": str(sim / "libcudart.so.13")},
    )
    assert uses(ran) == (1, 1)


def test_memory_that_was_discarded_between_two_owners_may_be_read_unwritten(
    script: Script, sim: Path
) -> None:
    ran = script(
        f"""{REPORTS}
hand_out(p, n)
ck(module.set(s, p, n, 3.0))
take_back(p, n)
ck(d.cuMemDiscardBatchAsync([p], [4 * n], 1, 0, s))
hand_out(p, n)
ck(module.read_anything(s, p, n))
ck(d.cuStreamSynchronize(s))
""",
        env={"SIM_CUDART": str(sim / "libcudart.so.13")},
    )
    assert uses(ran) == (1, 0)


@pytest.mark.parametrize("same", [True, False], ids=["same-stream", "other-stream"])
def test_what_a_kernel_of_unknown_effect_may_have_written_is_not_surely_lost(
    script: Script, same: bool
) -> None:
    """It is handed nothing: what pointers in device memory lead to is not known either."""
    ran = script(
        f"""
        module, s, n = Module(), stream(), 1 << 20
        p = managed(n)
        put(p, np.ones(n))
        ck(d.cuMemDiscardBatchAsync([p], [4 * n], 1, 0, s))
        other = s if {same} else stream()
        if not {same}:
            event = ck(d.cuEventCreate(0))
            ck(d.cuEventRecord(event, s))
            ck(d.cuStreamWaitEvent(other, event, 0))
        ck(module.unknown(other, 0))
        ck(d.cuStreamSynchronize(other))
        ck(module.scale(s, p, n, 2.0))
        ck(d.cuStreamSynchronize(s))
        """
    )
    assert uses(ran) == (1, 0)


def test_a_kernel_of_unknown_effect_before_the_discard_excuses_nothing(script: Script) -> None:
    ran = script(
        """
        module, s, n = Module(), stream(), 1 << 20
        p = managed(n)
        put(p, np.ones(n))
        ck(module.unknown(s, p))
        ck(d.cuMemDiscardBatchAsync([p], [4 * n], 1, 0, s))
        ck(module.scale(s, p, n, 2.0))
        assert error(d.cuStreamSynchronize(s)) == "ILLEGAL_ADDRESS"
        """
    )
    assert uses(ran) == (1, 1)


def test_a_discard_after_a_kernel_of_unknown_effect_loses_for_sure_again(script: Script) -> None:
    ran = script(
        """
        module, s, n = Module(), stream(), 1 << 20
        p = managed(n)
        put(p, np.ones(n))
        ck(d.cuMemDiscardBatchAsync([p], [4 * n], 1, 0, s))
        ck(module.unknown(s, p))
        ck(d.cuMemDiscardBatchAsync([p], [4 * n], 1, 0, s))
        ck(module.scale(s, p, n, 2.0))
        assert error(d.cuStreamSynchronize(s)) == "ILLEGAL_ADDRESS"
        """
    )
    assert uses(ran) == (1, 1)


def test_discarded_memory_is_poisoned_until_it_is_rewritten(script: Script) -> None:
    ran = script(
        """
        module, s, n = Module(), stream(), 1 << 20
        p = managed(n)
        ck(module.set(s, p, n, 3.0))
        ck(d.cuMemDiscardAndPrefetchBatchAsync([p], [4 * n], 1, [CPU], [0], 1, 0, s))
        ck(d.cuStreamSynchronize(s))
        seen = np.frombuffer((ctypes.c_uint8 * 64).from_address(int(p)), dtype=np.uint8)
        assert (seen == 0xD5).all()
        ck(module.set(s, p, n, 4.0))
        ck(module.scale(s, p, n, 2.0))
        ck(d.cuStreamSynchronize(s))
        assert (get(p, n) == 8).all()
        """
    )
    assert ran.statistics[0]["discarded_uses"] == 0
    assert ran.statistics[0]["bytes_discarded"] > 0


@pytest.mark.parametrize("source", ["host", "device"])
def test_a_pitched_copy_rewrites_the_regions_of_its_rows(script: Script, source: str) -> None:
    """Its rows lie further apart than a 64 KiB region, and it writes all of them, not as many bytes
    from the first on.
    """
    ran = script(
        f"""
        module, s, n, rows = Module(), stream(), 1 << 20, 64
        p, q = managed(n), managed(n)
        ck(module.set(s, p, n, 3.0))
        ck(module.set(s, q, n, 5.0))
        ck(d.cuMemDiscardBatchAsync([p], [4 * n], 1, 0, s))
        T, box = d.CUmemorytype, d.CUDA_MEMCPY2D()
        host = np.full((rows, 1 << 14), 5, dtype=np.float32)
        box.dstMemoryType, box.dstDevice, box.dstPitch = T.CU_MEMORYTYPE_DEVICE, p, 1 << 16
        box.WidthInBytes, box.Height, box.srcPitch = 8, rows, 1 << 16
        if {source == "host"}:
            box.srcMemoryType, box.srcHost = T.CU_MEMORYTYPE_HOST, host.ctypes.data
        else:
            box.srcMemoryType, box.srcDevice = T.CU_MEMORYTYPE_DEVICE, q
        ck(d.cuMemcpy2DAsync(box, s))
        ck(module.scale(s, p, n, 2.0))
        ck(d.cuStreamSynchronize(s))
        assert (get(p, n).reshape(rows, 1 << 14)[:, :2] == 10).all()
        """
    )
    assert ran.statistics[0]["discarded_uses"] == 0
