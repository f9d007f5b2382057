"""benchmarks/mechanisms.py: every mechanism can be taken out of the core, and the page is that of
what is kept.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def mechanisms(benchmarks: Path) -> ModuleType:
    assert (benchmarks / "mechanisms.py").is_file()
    return importlib.import_module("mechanisms")


def test_each_text_is_in_the_sources_once(mechanisms: ModuleType) -> None:
    for one in mechanisms.MECHANISMS:
        assert (ROOT / one.file).read_text().count(one.old) == 1, one.name
        assert one.new != one.old
        assert one.without


def test_names_are_unique(mechanisms: ModuleType) -> None:
    assert len({one.name for one in mechanisms.MECHANISMS}) == len(mechanisms.MECHANISMS)


def test_the_page_is_that_of_what_is_kept(mechanisms: ModuleType) -> None:
    kept = json.loads(mechanisms.FILE.read_text())["ms"]
    assert mechanisms.PAGE.read_text() == mechanisms.page(kept)
    for one in mechanisms.MECHANISMS:
        assert kept[one.name], f"{one.name} was never taken out"


def test_a_cell_names_the_worst_and_the_best(mechanisms: ModuleType) -> None:
    assert mechanisms.cell({"a": 1.0, "b:batch=2": 1.21}) == "1.100 (`b` 1.210)"
    assert mechanisms.cell({"a": 0.5, "b": 2.0}) == "1.000 (`b` 2.000, `a` 0.500)"
    assert mechanisms.cell({"a": 1.001}) == "1.001"


def test_an_unknown_mechanism_is_refused(
    mechanisms: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["mechanisms.py", "--only", "nothing"])
    with pytest.raises(SystemExit) as ended:
        mechanisms.main()
    assert ended.value.code == 2
    assert "no mechanism is called nothing; there are evict-ahead," in capsys.readouterr().err
