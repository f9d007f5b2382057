"""Pages as a browser sees them."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any


class Parsed(HTMLParser):
    """What a browser sees: elements with their attributes, the text of headings, the charts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[str] = []
        self.charts: dict[str, Any] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        self.headings += [""] if re.fullmatch(r"h\d", tag) else []

    def handle_data(self, data: str) -> None:
        tag, attributes = self.elements[-1] if self.elements else ("", {})
        if re.fullmatch(r"h\d", tag):
            self.headings[-1] += data
        elif attributes.get("id") == "charts":
            self.charts = json.loads(data)
