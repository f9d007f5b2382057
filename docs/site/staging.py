"""Writes the pages that Sphinx reads: those of docs/, with what the site adds to them, and those
that are made of the command line and of the settings.

Usage: python staging.py TARGET writes the site's source into the folder TARGET, which it empties
first; python staging.py --tables writes the generated tables into the pages of docs/. Exit status 2
with one line on standard error where a page cannot be made.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click
import command_pages
import menu
import page_text
import settings_tables

from deepum.cli import deepum
from deepum.errors import DeepumError

SITE = Path(__file__).resolve().parent
DOCS = SITE.parent
ROOT = DOCS.parent
# Pages outside of docs/ that the site has as well, by their names there.
OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def _pages() -> dict[str, str]:
    """The text of each page that is kept by hand, by its path below docs/."""
    found = {
        path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(DOCS.rglob("*.md"))
        if SITE not in path.parents
    }
    return found | {
        name: (ROOT / source).read_text(encoding="utf-8") for source, name in OUTSIDE.items()
    }


def with_tables(name: str, text: str) -> str:
    """The page with its generated tables as they have to be now; pages without any as they are."""
    if name == "configuration.md":
        return settings_tables.written(text)
    if name == "commands.md":
        return command_pages.written(text, deepum)
    return text


def write_tables() -> None:
    """Brings the generated tables in docs/ up to date."""
    for name in ("configuration.md", "commands.md"):
        page = DOCS / name
        page.write_text(with_tables(name, page.read_text(encoding="utf-8")), encoding="utf-8")


def stage(target: Path) -> None:
    """Writes all pages into `target`, which is emptied first. Raises DeepumError where an extra
    that a subcommand needs is absent, or a page refers to what is not there.
    """
    shutil.rmtree(target, ignore_errors=True)
    pages = {name: with_tables(name, text) for name, text in _pages().items()}
    pages |= command_pages.pages(deepum, pages)
    outside = {f"{'../' * depth}{s}": f"/{n}" for s, n in OUTSIDE.items() for depth in (1, 2)}
    for name, text in pages.items():
        text = page_text.with_pictures(page_text.with_links(text, pages, outside), DOCS / name)
        text = menu.with_contents(name, text, pages)
        page = target / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
    for picture in sorted(DOCS.rglob("*.svg")):
        if picture.parent.name != "pictures":  # those are within the pages
            shutil.copy2(picture, target / picture.relative_to(DOCS))


def main() -> int:
    """Runs the command line and gives its exit status."""
    if len(sys.argv) != 2:
        click.echo("deepum: error: usage: staging.py TARGET|--tables", err=True)
        return 2
    try:
        if sys.argv[1] == "--tables":
            write_tables()
        else:
            stage(Path(sys.argv[1]))
    except DeepumError as error:
        click.echo(error.line, err=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
