"""What matrix products cost: cut into tiles as the stand-in for cuBLAS cuts them
(native/simgpu/cublas/gemm.cpp, choose_tiling).

tests/workloads compares both on what a real program launches.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from deepum.trace.work import Cost

_MOST_SPLITS, _LEAST_K = 16, 512
_WORTHWHILE = 0.9  # of the time
_VECTOR = 16  # narrower matrices are vectors to cuBLAS, which has other kernels for them


def _edge(size: int) -> int:
    if size <= _VECTOR:
        return max(size, 1)
    return 32 if size <= 32 else 64 if size <= 64 else 128


def product(m: int, n: int, k: int, batches: int, bits: int, multiprocessors: int) -> Cost:
    """Of `batches` products of m x k and k x n elements of that many bits, on a card with so many
    multiprocessors.

    Up to 16 bits the matrix units do it. FP64 takes twice as long as FP32.
    """
    if min(m, n, batches) == 0:
        return Cost()
    rows, columns = _edge(m), _edge(n)
    tiles = -(-m // rows) * -(-n // columns) * batches

    def time(splits: int) -> float:
        return ceil(tiles * splits / multiprocessors) / splits

    splits = 1
    for tried in range(2, _MOST_SPLITS + 1):
        if k // tried < _LEAST_K:
            break
        if time(tried) < _WORTHWHILE * time(splits):
            splits = tried
    units = bits <= 16
    slower = max(bits / (16 if units else 32), 0.5)
    return Cost(
        flops=2.0 * tiles * rows * columns * k * slower, tiles=tiles * splits, matrix_units=units
    )


def of_tensors(m: int, n: int, k: int, batches: int, tensor: Any, multiprocessors: int) -> Cost:
    """The same, of elements as that tensor's."""
    return product(m, n, k, batches, 8 * int(tensor.itemsize), multiprocessors)
