"""Reports in a browser, if there is one: at a phone's and at a desktop's width all charts are drawn,
nothing is wider than the window, the answers come first, and nothing is wrong on the console.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from browser import SIZES, Browser, Seen
from required import needed
from small import MIB

from deepum.report import inputs
from deepum.report.timeline import observe
from deepum.report.write import report
from deepum.simulate.comparison import compare
from deepum.simulate.policies import BY_NAME
from deepum.simulate.workload import load

# Charts are drawn after the page has been loaded.
_DRAWN_MS = 3000
_MEASURE = """page => {
  const charts = [...page.querySelectorAll('.chart')];
  return {
    charts: charts.length,
    drawn: charts.filter(chart => chart.querySelector('canvas')?.width > 0).length,
    answers: page.querySelectorAll('.answers section').length,
    end: page.querySelector('.answers section:last-child').getBoundingClientRect().bottom,
  };
}"""


def look(pages: dict[str, str], folder: Path) -> Seen:
    """What a browser makes of these pages, by name."""
    for name, html in pages.items():
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    return Browser(folder).visit([f"{name}.html" for name in pages], _MEASURE, _DRAWN_MS)


@pytest.fixture
def pages(workload: Path, recorded_run: Path) -> dict[str, str]:
    """Pages of a workload and of two runs that are beside each other."""
    needed("vl_convert", "report")
    loaded = load(str(workload), 5, False)
    chosen = [BY_NAME[name] for name in ("on-demand", "deepum", "unlimited")]
    compared = compare(loaded, loaded.machine, chosen, 192 * MIB).as_json()
    timelines = [observe(loaded, loaded.machine, BY_NAME["deepum"], 192 * MIB)]
    ran = json.loads((recorded_run / "run.json").read_text())
    paged = ran | {"policy": "on-demand"}
    runs = inputs.Inputs(statistics=[("a.json", paged), ("b.json", ran)])
    return {
        "workload": report(inputs.Inputs(), [(compared, timelines)]).html(),
        "runs": report(runs, []).html(),
    }


def test_pages_are_drawn_at_the_width_of_the_window(pages: dict[str, str], tmp_path: Path) -> None:
    seen = look(pages, tmp_path)
    assert (seen.console, seen.missing) == ([], [])
    heights = dict(SIZES)
    assert len(seen.pages) == len(pages) * len(heights)
    for each in seen.pages:
        measured = each["measured"]
        assert each["wider"] <= 0 and each["outside"] == [], each
        assert measured["drawn"] == measured["charts"] > 1, each
        assert measured["answers"] == 4 and measured["end"] <= heights[each["width"]], each


def test_a_chart_that_cannot_be_drawn_is_seen(pages: dict[str, str], tmp_path: Path) -> None:
    seen = look({"broken": pages["runs"].replace('"vconcat"', '"vcncat"')}, tmp_path)
    assert all(each["measured"]["drawn"] < each["measured"]["charts"] for each in seen.pages)
