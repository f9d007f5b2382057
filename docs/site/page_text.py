"""What becomes of a page's text on the site: names of pages are links, pictures follow the site's
colours, and what is not on the site is named and no link.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

# Code, which stays as it is: fenced, indented behind an empty line, and within a line; comments and
# links likewise.
_KEPT = re.compile(
    r"^```.*?^```$|(?<=\n\n)(?:    [^\n]*\n+)+|`[^`\n]*`|<!--.*?-->|\[[^\]\n]*\]\([^)\s]*\)",
    re.MULTILINE | re.DOTALL,
)
_NAMED = re.compile(r"(?<![\w/.-])docs/([\w/.-]*\w\.md)\b(?:, ([A-Z][^\n,.;:()|]*))?")
_LINK = re.compile(r"\[([^\]\n]*)\]\(([^)\s]*)\)")
_PICTURE = re.compile(r"^!\[([^\]\n]*)\]\((pictures/[\w-]+\.svg)\)$", re.MULTILINE)


def _title(text: str) -> str:
    first = text.splitlines()[0].lstrip("# ")
    return re.sub(r"[\[\]]", "", first)


def _anchor(text: str, heading: str) -> str:
    """Of a heading of the page, as GitHub makes it; empty where there is no such heading."""
    if f"# {heading}\n" not in text:
        return ""
    return "#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def with_links(text: str, pages: Mapping[str, str], outside: Mapping[str, str]) -> str:
    """The page with a link wherever it names another by its path, with that page's title; links
    to pages of `outside` lead to their place on the site, and those to files of the checkout become
    the file's name.
    """

    def named(found: re.Match[str]) -> str:
        if found[1] not in pages:
            return found[0]
        text, heading = pages[found[1]], found[2] or ""
        if heading and (anchor := _anchor(text, heading)):
            return f"[{_title(text)}, {heading}](/{found[1]}{anchor})"
        return f"[{_title(text)}](/{found[1]})" + (f", {heading}" if heading else "")

    def linked(found: re.Match[str]) -> str:
        path, mark, anchor = found[2].partition("#")
        if path in outside:
            return f"[{found[1]}]({outside[path]}{mark}{anchor})"
        if path.startswith("docs/"):  # in a page that is not in docs/ itself
            return f"[{found[1]}]({path.removeprefix('docs')}{mark}{anchor})"
        if path.startswith("../") and not path.endswith((".md", ".svg")):
            return f"{found[1]} (`{path.replace('../', '')}`)"
        return found[0]

    parts, end = [], 0
    for kept in _KEPT.finditer(text):
        parts += [_NAMED.sub(named, text[end : kept.start()]), _LINK.sub(linked, kept[0])]
        end = kept.end()
    return "".join([*parts, _NAMED.sub(named, text[end:])])


def with_pictures(text: str, page: Path) -> str:
    """The page with its drawings within it instead of beside it, so that their text is the page's
    and their colours those of the site, light or dark. A drawing's own style, which is for pages
    that show it as a file, is left out.
    """

    def drawn(found: re.Match[str]) -> str:
        drawing = (page.parent / found[2]).read_text(encoding="utf-8")
        drawing = re.sub(r"<style>.*?</style>\n?", "", drawing, flags=re.DOTALL)
        drawing = re.sub(r"\n\s*\n", "\n", drawing).strip()
        return f'<div class="picture">\n{drawing}\n</div>\n'

    return _PICTURE.sub(drawn, text)
