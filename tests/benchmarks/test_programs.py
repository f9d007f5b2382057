"""benchmarks/programs.py: what counts as a failure, and the table in the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def ran(programs: Any, status: int, seconds: float, destroyed: int = 0) -> Any:
    simulated = {"discarded_uses_sure": destroyed, "general_kernels": []}
    stats = {
        "gpu_time_max_s": seconds,
        "faults": 7,
        "peak_allocated_bytes": 3 << 30,
        "warnings": [],
        "processes": [{"simulated": simulated}],
    }
    return programs.Ran(status, stats, "RuntimeError: CUDA error")


@pytest.fixture
def programs(benchmarks: Path) -> Any:
    import programs

    return programs


def test_it_fails_by_its_status_by_what_discards_destroy_and_by_its_speed(programs: Any) -> None:
    def failures(on_demand: Any, deepum: Any) -> list[str]:
        return [
            line.splitlines()[0]
            for line in programs.Comparison(programs.CASES[0], on_demand, deepum).failures()
        ]

    assert failures(ran(programs, 0, 4.0), ran(programs, 0, 2.0)) == []
    assert failures(ran(programs, 0, 4.0), ran(programs, 0, 2.5)) == [
        "1.60 times as fast as on demand, not 2"
    ]
    assert failures(ran(programs, 0, 4.0), ran(programs, 1, 1.0)) == ["deepum: exit status 1"]
    assert failures(ran(programs, 0, 4.0), ran(programs, 0, 1.0, 3)) == [
        "deepum: 3 launches read what a discard destroyed"
    ]


def test_rows_of_other_cases_stay_and_those_of_no_case_go(programs: Any, tmp_path: Path) -> None:
    page, (first, second, *_) = tmp_path / "page.md", programs.CASES
    table = f"| `{first.key}`: old | 1 |\n| `{second.key}`: old | 2 |\n| `gone`: old | 3 |\n"
    page.write_text(f"before\n{programs.BEGIN}\n{table}{programs.END}\nafter\n")
    programs.write_page(page, {second.key: f"| `{second.key}`: new | 4 |"})
    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    assert [line for line in lines if line.startswith("| `")] == [
        f"| `{first.key}`: old | 1 |",
        f"| `{second.key}`: new | 4 |",
    ]


def test_each_case_has_a_script_and_a_row_in_the_documentation(programs: Any) -> None:
    page = (ROOT / "docs" / "programs.md").read_text(encoding="utf-8")
    assert len({case.key for case in programs.CASES}) == len(programs.CASES)
    for case in programs.CASES:
        assert (programs.SCRIPTS / case.script[0]).is_file()
        assert f"| `{case.key}`: {case.what} |" in page
