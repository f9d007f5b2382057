"""What benchmarks/thesis_ilp.py makes of its results."""

from __future__ import annotations

import pytest


@pytest.mark.usefixtures("benchmarks")
def test_all_is_of_demand_paging() -> None:
    from thesis_ilp import table

    one = {
        "batch": 256,
        "peak_bytes": 3 << 29,
        "compute_ms": 50.0,
        "bound_ms": 60.0,
        "paging_ms": 100.0,
        "planners": {"heuristic": 80.0, "ilp": 70.0},
        "forms": {"own sums": None},
    }
    fits = {key: value for key, value in one.items() if key not in ("planners", "forms")}
    lines = table({"points": {"a": one, "b": fits | {"batch": 512}}}).splitlines()
    rows = {
        cells[1].strip(): [cell.strip() for cell in cells[2:4]]
        for cells in (line.split("|") for line in lines)
    }
    assert rows["published: heuristic"] == ["0.62", "0.60"]
    assert rows["published: ILP"] == ["0.64", "0.57"]
    assert rows["lower bound of unified memory"] == ["0.600", "0.600"]
    assert rows["`ilp`, replayed"] == ["0.700", "fits"]
    assert rows["`search`, replayed"] == ["-", "fits"]
    assert rows["most bytes in use, GiB"] == ["1.50", "1.50"]


@pytest.mark.usefixtures("benchmarks")
def test_the_machine_is_as_the_thesis_has_it() -> None:
    from thesis_ilp import MACHINE

    from deepum.machines import named

    card = named(str(MACHINE)).native()
    assert (card.memory_bytes, card.memory_gbps, card.fp32_gflops) == (8 << 30, 448.0, 9750.0)
    assert card.h2d_gbps == card.d2h_gbps == 12.9
