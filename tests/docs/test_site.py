"""The documentation site: what is on it, what is refused, and how it looks in a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from browser import SIZES, Browser

from deepum.cli import deepum
from deepum.configuration.settings import SETTINGS

ROOT = Path(__file__).resolve().parents[2]
Build = Callable[[Path, Path], subprocess.CompletedProcess[str]]


def page(site: Path, name: str) -> str:
    return (site.with_name("site-source") / name).read_text(encoding="utf-8")


def test_each_command_has_a_page_of_its_help(site: Path) -> None:
    names = deepum.list_commands(None)  # type: ignore[arg-type]
    pages = {path.stem for path in (site / "commands").glob("*.html")}
    assert pages == set(names)
    menu = (site / "index.html").read_text(encoding="utf-8")
    assert all(f'href="commands/{name}.html"' in menu for name in names)
    run = page(site, "commands/run.md")
    assert "## Where it runs" in run and "\n`--gpu-memory SIZE" in run
    assert "## deepum log replay" in page(site, "commands/log.md")


def test_each_setting_is_on_the_page_of_settings(site: Path) -> None:
    text = page(site, "configuration.md")
    assert [s.variable for s in SETTINGS if f"`{s.variable}`" not in text] == []


@pytest.mark.parametrize("name", ["configuration.md", "commands.md"])
def test_generated_tables_are_up_to_date(site: Path, name: str) -> None:
    """`scripts/site --tables` writes them."""
    kept = (ROOT / "docs" / name).read_text(encoding="utf-8")
    for part in re.findall(r"<!-- \w+: begin -->.*?<!-- \w+: end -->", kept, re.DOTALL):
        names = re.findall(r"^\| (`.*?`)", part, re.MULTILINE)
        assert names == re.findall(r"^\| (`.*?`)", _part(page(site, name), part), re.MULTILINE), (
            "run scripts/site --tables"
        )
    assert kept.count(": begin -->") == (4 if name == "configuration.md" else 1)


def _part(text: str, like: str) -> str:
    begin, end = like.splitlines()[0], like.splitlines()[-1]
    return text[text.index(begin) : text.index(end)]


def test_names_of_pages_are_links_and_pictures_are_text(site: Path) -> None:
    usage = (site / "usage.html").read_text(encoding="utf-8")
    assert 'href="configuration.html"' in usage and "docs/configuration.md" not in usage
    pictures = (site / "how-it-works.html").read_text(encoding="utf-8")
    assert pictures.count('<div class="picture">') == len(
        list((ROOT / "docs" / "pictures").glob("*.svg"))
    )
    assert "evict ahead of need" in pictures and "svg { --ink" not in pictures


def test_what_is_wrong_is_named(built: Build, tmp_path: Path) -> None:
    """A page in no menu, a page and an anchor that are not there, assets on another host."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "docs" / "lonely.md").write_text("# Lonely\n\n[x](nowhere.md)\n")
    glossary = tmp_path / "docs" / "glossary.md"
    glossary.write_text(
        glossary.read_text()
        + "\n[x](usage.md#no-such-part)\n\n![y](https://example.org/y.png)\n\n![z](drawn.svg)\n"
    )
    style = tmp_path / "docs" / "site" / "static" / "site.css"
    style.write_text('@import "https://example.org/font.css";\n' + style.read_text())
    (tmp_path / "docs" / "drawn.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg"><style>@font-face { font-family: z; '
        "src: url(https://example.org/z.woff2) }</style></svg>\n"
    )
    result = built(tmp_path, tmp_path / "site")
    lines = result.stderr.splitlines()

    def has_line(*words: str) -> bool:
        return any(all(word in line for word in words) for line in lines)

    assert result.returncode == 1 and "Traceback" not in result.stderr
    assert has_line("lonely.md", "toctree") and has_line("lonely.md", "nowhere.md")
    assert has_line("glossary.md", "no-such-part")
    assert has_line("glossary.html: https://example.org/y.png: is on another host")
    assert has_line("drawn.svg: https://example.org/z.woff2: is on another host")
    assert has_line("site.css: https://example.org/font.css: is on another host")
    assert lines[-1].startswith("deepum: error: the site: ")


def test_a_page_without_its_part_for_a_table_is_refused(built: Build, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "docs" / "configuration.md").write_text("# Configuration\n")
    result = built(tmp_path, tmp_path / "site")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert result.stderr.startswith("deepum: error: options: ")


def test_pages_in_a_browser(site: Path) -> None:
    """At both widths nothing is wider than the page, no drawing's text leaves the drawing, and the
    console stays empty, and nothing that a page asks for is absent.
    """
    names = ["index.html", "how-it-works.html", "commands/run.html", "configuration.html"]
    names += ["research/workloads.html", "search.html?q=watermark"]
    seen = Browser(site).visit(names)
    assert len(seen.pages) == len(names) * len(SIZES)
    assert (seen.console, seen.missing) == ([], [])
    assert [each for each in seen.pages if each["wider"] or each["outside"]] == []
    assert all(each["title"] for each in seen.pages)


def test_drawings_share_one_style_and_say_what_they_show() -> None:
    drawings = [path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "pictures").iterdir()]
    assert len({text[text.index("<style>") : text.index("</style>")] for text in drawings}) == 1
    assert all("<title" in text and "<desc" in text for text in drawings)
    classes = {name for text in drawings for name in re.findall(r' class="([\w-]+)"', text)}
    site = (ROOT / "docs" / "site" / "static" / "site.css").read_text(encoding="utf-8")
    assert {name for name in classes if f".picture .{name} " not in site} == set()
