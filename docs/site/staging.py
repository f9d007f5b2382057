"""Writes the pages that Sphinx reads: those of docs/, with what the site adds to them, and those
that are made of the command line and of the settings.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import command_pages
import menu
import page_text
import settings_tables

from deepum.cli import deepum

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
    """Writes all pages into `target`, a folder that is made. Raises DeepumError where an extra that
    a subcommand needs is absent.
    """
    pages = {name: with_tables(name, text) for name, text in _pages().items()}
    pages |= command_pages.pages(deepum, pages)
    outside = {f"{'../' * depth}{s}": f"/{n}" for s, n in OUTSIDE.items() for depth in (1, 2)}
    for name, text in pages.items():
        text = page_text.with_pictures(page_text.with_links(text, pages, outside), DOCS / name)
        text = menu.with_contents(name, text, pages)
        page = target / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
    for other in sorted(DOCS.rglob("*")):
        # Drawings are within the pages.
        ours = SITE not in other.parents and other.parent.name != "pictures"
        if other.is_file() and other.suffix != ".md" and ours:
            shutil.copy2(other, target / other.relative_to(DOCS))
