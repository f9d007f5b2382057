"""docs/research/figures.md is what benchmarks/ablation.py makes; the plot is written, and the same
figures give the same file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from required import needed

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "benchmarks" / "results" / "ablation-simulated-v100.json"
PAGE = ROOT / "docs" / "research" / "figures.md"
Call = Callable[..., None]


@pytest.mark.usefixtures("benchmarks")
def test_the_page_tells_the_file() -> None:
    from ablation_report import page
    from ablation_results import Results

    text = PAGE.read_text()
    assert page(Results(FILE), text) == text


@pytest.mark.usefixtures("benchmarks")
def test_the_file_has_every_case_with_every_row_and_none_failed() -> None:
    from ablation_cases import MECHANISMS, ROWS, SWEPT, UNLIMITED, sweep_rows
    from ablation_results import Results

    cases = Results(FILE).cases
    wanted = {f"mechanisms: {case.name}": {UNLIMITED, *ROWS} for case in MECHANISMS} | {
        f"degrees: {case.name}": set(sweep_rows()) for case in SWEPT
    }
    assert {name: set(record["rows"]) for name, record in cases.items()} == wanted
    assert not any(record["failed"] for record in cases.values())


@pytest.mark.usefixtures("benchmarks")
def test_a_page_without_marks_is_refused() -> None:
    from ablation_report import page
    from ablation_results import Results
    from main_job import JobError

    with pytest.raises(JobError, match="no place is marked for mechanisms"):
        page(Results(None), "# Figures\n")


def test_the_plot_of_the_page_shows_each_system_on_each_case(benchmarks: Path) -> None:
    from ablation_cases import SWEPT, SYSTEMS

    drawn = (ROOT / "docs" / "research" / "figures-degrees.svg").read_text()
    assert "figures-degrees.svg" in PAGE.read_text()
    assert all(f">{case.name}<" in drawn for case in SWEPT)
    assert all(drawn.count(f">{system}<") == len(SWEPT) for system in SYSTEMS)


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_plot_is_written(call: Call, tmp_path: Path, kind: str) -> None:
    needed("matplotlib", "figures")
    drawn = []
    for name in ("one", "two"):
        call("degrees", "--json", tmp_path / "results.json", "--plot", tmp_path / f"{name}.{kind}")
        drawn.append((tmp_path / f"{name}.{kind}").read_bytes())
    assert drawn[0] == drawn[1]
    if kind == "svg":
        text = drawn[0].decode()
        assert ">paper<" in text and ">ours<" in text and "prefetch degree N (launches)" in text
    else:
        assert drawn[0].startswith(b"\x89PNG")


def test_without_matplotlib_the_runs_are_kept_and_one_line_says_so(
    ablation: ModuleType, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit) as ended:
        call("degrees", "--json", tmp_path / "results.json", "--plot", tmp_path / "x.svg")
    assert "matplotlib is missing" in str(ended.value) and "deepum[figures]" in str(ended.value)
    assert len(ablation.made.runs) == 15 and (tmp_path / "results.json").exists()
