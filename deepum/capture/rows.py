"""Which rows a gather or scatter picks: indices are not known where nothing computes them, so rows
are drawn, uniformly, by a generator seeded with the tensor of indices and the step. Operators that
use the same indices meet the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepum.trace.program import hashed
from deepum.trace.work import REGION_BYTES

_MOST_DRAWN = 1 << 20


@dataclass(frozen=True, slots=True)
class Rows:
    """`count` rows of a table of `table_bytes`. `key`: of the indices; `fixed`: they are the same
    in every step.
    """

    key: str
    count: int
    row_bytes: int
    table_bytes: int
    seed: int
    fixed: bool = False

    def at(self, step: int) -> Sequence[tuple[int, int]]:
        """Merged by region: its offset, and the bytes of the rows in it."""
        rows = self.table_bytes // self.row_bytes if self.row_bytes else 0
        if rows == 0 or self.count == 0:
            return []
        drawn = min(self.count, _MOST_DRAWN)
        generator = np.random.default_rng([self.seed, hashed(self.key), 0 if self.fixed else step])
        starts = generator.integers(0, rows, drawn, dtype=np.int64) * self.row_bytes
        if self.row_bytes >= REGION_BYTES:
            return [(int(at), self.row_bytes) for at in np.unique(starts)]
        regions, counts = np.unique(starts // REGION_BYTES, return_counts=True)
        places = regions * REGION_BYTES
        sizes = np.minimum(
            counts * self.row_bytes, np.minimum(REGION_BYTES, self.table_bytes - places)
        )
        return list(zip(places.tolist(), sizes.tolist(), strict=True))
