"""Pages have the tables that benchmarks make of what they keep."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest


@pytest.mark.usefixtures("benchmarks")
@pytest.mark.parametrize(
    "name",
    (
        *("arena", "deviating", "dtr", "iterations", "planned", "planners", "recomputation"),
        *("remat_auto", "rematerialisation", "swapadvisor", "thesis_ilp"),
    ),
)
def test_the_page_tells_the_file(name: str) -> None:
    kept = importlib.import_module(name).KEPT
    assert kept.script == name
    text = kept.page_file.read_text(encoding="utf-8")
    assert kept.page(json.loads(kept.file.read_text(encoding="utf-8")), text) == text


@pytest.mark.usefixtures("benchmarks")
@pytest.mark.parametrize(
    ("name", "option", "kind"),
    [
        ("deviating", "--programs", "program"),
        ("dtr", "--networks", "network"),
        ("dtr", "--heuristics", "heuristic"),
        ("planned", "--policies", "policy"),
        ("rematerialisation", "--networks", "network"),
    ],
)
def test_a_name_that_is_unknown_is_refused_in_one_line(
    name: str,
    option: str,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", [name, option, "none"])
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(name).main()
    assert ended.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert f"{kind} 'none': is unknown; choose of " in last


@pytest.mark.usefixtures("benchmarks")
def test_a_table_goes_between_its_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import kept

    monkeypatch.setattr(kept, "ROOT", tmp_path)
    one = kept.Kept("some", "page.md", lambda results: f"{results['points']}\n", "some.json")
    begin, end = "<!-- benchmarks/some.py: begin -->", "<!-- benchmarks/some.py: end -->"
    page = tmp_path / "page.md"
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    file = tmp_path / "other.json"
    kept.save(file, kept.results_in(file, "points") | {"points": {"a": 1}})
    one.write_page(file)
    assert page.read_text() == f"before\n{begin}\n{{'a': 1}}\n{end}\nafter\n"
    page.write_text(f"before\n{begin}\nafter\n")
    with pytest.raises(ValueError, match=r"page\.md"):
        one.write_page(file)
    assert page.read_text() == f"before\n{begin}\nafter\n"
