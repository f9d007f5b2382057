"""Reports in a browser, if there is one: at a phone's and at a desktop's width all charts are drawn,
nothing is wider than the window, the answers come first, and nothing is wrong on the console.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from required import needed
from small import MIB

from deepum.report import inputs
from deepum.report.timeline import observe
from deepum.report.write import report
from deepum.simulate.comparison import compare
from deepum.simulate.policies import BY_NAME
from deepum.simulate.workload import load

PHONE, DESKTOP = (390, 844), (1280, 900)
# Shows the page in a frame, since windows are 500 pixels wide at least, and keeps what it tells.
_FRAME = """<!doctype html><pre id="seen"></pre><script>
addEventListener('message', told => { document.getElementById('seen').textContent = told.data; });
</script><iframe src="page.html" width="WIDTH" height="HEIGHT"></iframe>"""
# Tells what it sees, once charts had time to be drawn.
_LOOK = """<script>
addEventListener('load', () => setTimeout(() => {
  const charts = [...document.querySelectorAll('.chart')];
  const last = document.querySelector('.answers section:last-child');
  parent.postMessage(JSON.stringify({
    width: innerWidth,
    wider: document.documentElement.scrollWidth - innerWidth,
    charts: charts.length,
    drawn: charts.filter(chart => chart.querySelector('canvas')?.width > 0).length,
    answers: document.querySelectorAll('.answers section').length,
    end: last.getBoundingClientRect().bottom,
  }), '*');
}, 3000));
</script></body>"""


def browser() -> str:
    """The path of Chromium or Chrome."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("needs Chromium")
    return found


def look(html: str, size: tuple[int, int], folder: Path) -> tuple[dict[str, Any], list[str]]:
    """What the page's own document tells at that size, and the lines of the console."""
    frame = folder / "frame.html"
    frame.write_text(_FRAME.replace("WIDTH", str(size[0])).replace("HEIGHT", str(size[1])))
    page = folder / "page.html"
    page.write_text(_LOOK.join(html.rsplit("</body>", 1)), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    options += [f"--user-data-dir={folder / 'profile'}", "--window-size=1400,1000"]
    told = subprocess.run(
        [browser(), *options, "--virtual-time-budget=10000", "--dump-dom", frame.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    seen = re.search(r'<pre id="seen">(.+?)</pre>', told.stdout, re.DOTALL)
    assert seen is not None, told.stderr[-2000:]
    console = [line for line in told.stderr.splitlines() if ":CONSOLE" in line]
    return json.loads(unescape(seen[1])), console


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


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
def test_pages_are_drawn_at_the_width_of_the_window(
    pages: dict[str, str], size: tuple[int, int], tmp_path: Path
) -> None:
    for name, html in pages.items():
        seen, console = look(html, size, tmp_path)
        assert console == [], name
        assert seen["width"] == size[0] and seen["wider"] <= 0, (name, seen)
        assert seen["drawn"] == seen["charts"] > 1, (name, seen)
        assert seen["answers"] == 4 and seen["end"] <= size[1], (name, seen)


def test_a_chart_that_cannot_be_drawn_is_seen(pages: dict[str, str], tmp_path: Path) -> None:
    broken = pages["runs"].replace('"vconcat"', '"vcncat"')
    seen, _ = look(broken, DESKTOP, tmp_path)
    assert seen["drawn"] < seen["charts"]
