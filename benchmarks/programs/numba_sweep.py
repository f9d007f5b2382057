"""numba-cuda: kernels that go over arrays, more than the card holds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numba import cuda


@cuda.jit
def axpy(a, x, y):
    at = cuda.grid(1)
    if at < x.size:
        y[at] += a * x[at]


arrays = [cuda.to_device(np.ones(8 << 20, dtype=np.float32)) for _ in range(20)]
for _ in range(8):
    for x, y in pairwise(arrays):
        axpy[(x.size + 255) // 256, 256](2.0, x, y)
    cuda.synchronize()
