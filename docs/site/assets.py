"""Whether built pages need anything from elsewhere: the site opens without a network."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

_ELSEWHERE = re.compile(r"(?:https?:)?//")
_IN_STYLES = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")\s]+)")


class _Fetched(HTMLParser):
    """The addresses that a browser fetches to show a page: not those that a reader may follow."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag != "a":
            self.addresses += [
                given[name] or "" for name in ("src", "srcset", "data") if name in given
            ]
        if tag == "link" and given.get("rel") not in ("canonical", "next", "prev"):
            self.addresses.append(given.get("href") or "")


def fetched_from_elsewhere(folder: Path) -> list[str]:
    """A line for each asset of the pages, styles and drawings below `folder` that is elsewhere."""
    wrong = []
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".html":
            parser = _Fetched()
            parser.feed(path.read_text(encoding="utf-8"))
            found = [address for address in parser.addresses if _ELSEWHERE.match(address)]
        elif path.suffix in (".css", ".svg"):
            found = _IN_STYLES.findall(path.read_text(encoding="utf-8"))
        else:
            continue
        wrong += [
            f"{path.relative_to(folder)}: {address}: is on another host; keep a copy in "
            f"docs/site/static"
            for address in found
        ]
    return wrong
