"""What benchmarks/arena.py makes of its results."""

from __future__ import annotations

import pytest


@pytest.mark.usefixtures("benchmarks")
def test_a_row_tells_the_best_seed_and_times_of_those_at_the_goal() -> None:
    from arena import NAMES, table

    def once(size: int, seconds: float = 0.0) -> dict[str, float]:
        return {"bytes": size, "seconds": seconds}

    found = {name: [once(150)] for name in NAMES}
    found["search"] = [once(120, 10.0), once(110, 3.0), once(105, 1.0), once(110, 2.0)]
    one = {"buffers": 7, "load_bytes": 100, "capacity_bytes": 110, "allocators": found}
    row = table({"inputs": {"x": one}}).splitlines()[2]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:5] == ["`x`", "7", "100", "1.1000", "-"]
    assert cells[5:] == ["1.500", "1.500", "1.500", "1.0500", "3 of 4", "2.00 s", "3.00 s"]
