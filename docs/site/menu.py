"""The site's menu: the lists of docs/index.md, in their order, under their headings."""

from __future__ import annotations

import re
from collections.abc import Mapping

_LINK = re.compile(r"^- \[([^\]]+)\]\(/?([^)#\s]+\.md)\)", re.MULTILINE)


def _contents(names: list[str], caption: str = "") -> str:
    """A table of contents that the page itself does not show."""
    told = f":caption: {caption}\n" if caption else ""
    return f"\n```{{toctree}}\n:hidden:\n{told}\n" + "\n".join(names) + "\n```\n"


def with_contents(name: str, text: str, pages: Mapping[str, str]) -> str:
    """A page with the menu below it: of index.md the pages that its lists name, by the names that
    they have there; of the list of commands a page each; of a folder's README.md the folder's other
    pages.
    """
    if name == "index.md":
        sections = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
        for heading, part in zip(sections[1::2], sections[2::2], strict=True):
            if found := _LINK.findall(part):
                text += _contents([f"{title} </{page}>" for title, page in found], heading)
    elif name == "commands.md":
        text += _contents([page for page in pages if page.startswith("commands/")])
    elif name.endswith("/README.md"):
        folder = name.removesuffix("README.md")
        below = [page for page in sorted(pages) if page.startswith(folder) and page != name]
        text += _contents([f"/{page}" for page in below])
    return text
