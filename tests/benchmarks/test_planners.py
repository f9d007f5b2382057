"""What benchmarks/planners.py makes of its results."""

from __future__ import annotations

import pytest


@pytest.mark.usefixtures("benchmarks")
def test_means_are_of_what_repeats() -> None:
    from planners import NAMES, table

    def point(repeats: bool, ms: float) -> dict[str, object]:
        found = {name: {"ms": ms, "seconds": 1.0} for name in NAMES}
        return {"repeats": repeats, "bound_ms": 10.0, "lp_ms": 11.0, "planners": found}

    lines = table({"points": {"a@m": point(True, 12.0), "b@m": point(False, 9.0)}}).splitlines()
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells[:4] == ["`a@m`", "10", "1.100", "1.200"]
    assert lines[3].startswith("| `b@m` [a] |")
    assert "without [a], 1 " in lines[4] and "1.200" in lines[4] and "0.900" not in lines[4]
