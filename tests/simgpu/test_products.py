"""What matrix products cost: tiles of 128 x 128 in waves over the multiprocessors, as the real
library's kernels run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Script = Callable[..., Any]

PREPARE = """
    import json
    blas = ctypes.CDLL("libcublas.so.13")
    handle = ctypes.c_void_p()
    assert blas.cublasCreate_v2(ctypes.byref(handle)) == 0
    memory = [int(device(1 << 26)) for _ in range(3)]
    one, none = ctypes.c_float(1), ctypes.c_float(0)

    def ms(m, n, k, *, type=0, batches=1):
        a, b, c = (ctypes.c_void_p(p) for p in memory)
        begin, end = ck(d.cuEventCreate(0)), ck(d.cuEventCreate(0))
        ck(d.cuEventRecord(begin, 0))
        stride = ctypes.c_longlong(0)
        assert blas.cublasGemmStridedBatchedEx(
            handle, 0, 0, m, n, k, ctypes.byref(one), a, type, m, stride, b, type, k, stride, ctypes.byref(none), c, type, m, stride,
            batches, 68, 0) == 0
        ck(d.cuEventRecord(end, 0))
        ck(d.cuEventSynchronize(end))
        return ck(d.cuEventElapsedTime(begin, end))
"""


@pytest.fixture
def products(script: Script) -> Callable[..., list[float]]:
    """Milliseconds of products, each told by the arguments of `ms`."""

    def run(*calls: str, machine: str = "v100-16gb") -> list[float]:
        times = ", ".join(f"ms({call})" for call in calls)
        ran = script(
            PREPARE + f"\n    print(json.dumps([{times}]))", env={"DEEPUM_SIM_MACHINE": machine}
        )
        return [float(ms) for ms in json.loads(ran.out)]

    return run


@pytest.mark.parametrize(
    ("machine", "type_", "tflops"),
    [("v100-16gb", 0, 13), ("v100-16gb", 2, 101), ("a100-40gb", 0, 19), ("a100-40gb", 2, 256)],
)
def test_large_products_reach_what_was_measured(
    products: Callable[..., list[float]], machine: str, type_: int, tflops: float
) -> None:
    """TFLOP/s of the sources in machine.cpp; type 0: FP32, 2: FP16."""
    (ms,) = products(f"8192, 8192, 8192, type={type_}", machine=machine)
    assert 2 * 8192**3 / ms / 1e9 == pytest.approx(tflops, rel=0.1)


def test_a_product_just_over_a_wave_takes_two_and_just_over_a_tile_a_whole_one(
    products: Callable[..., list[float]],
) -> None:
    wave, next_wave, next_tile = products("1024, 1280, 500", "1024, 1408, 500", "1024, 1281, 500")
    assert next_wave == pytest.approx(2 * wave, rel=0.03)
    assert next_tile == pytest.approx(next_wave, rel=0.01)


def test_k_is_split_where_tiles_are_few(products: Callable[..., list[float]]) -> None:
    """A weight's gradient: 36 tiles on 80 multiprocessors would leave more than half of
    them idle.
    """
    small, large = products("768, 768, 8192", "6144, 6144, 8192")
    assert 1 < small / (large / 64) < 1.2


def test_many_small_products_fill_the_card_as_one_large_one(
    products: Callable[..., list[float]],
) -> None:
    batched, large = products("64, 64, 1024, batches=8000", "8000, 4096, 1024")
    assert batched == pytest.approx(large, rel=0.05)


def test_a_row_of_vectors_is_bound_by_memory(products: Callable[..., list[float]]) -> None:
    (ms,) = products("8192, 1, 8192")
    assert 4 * 8192**2 / ms / 1e6 == pytest.approx(790, rel=0.1)
