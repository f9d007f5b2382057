"""Generated parts of a page: what stands between `<!-- NAME: begin -->` and its `end`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from deepum.errors import DeepumError


def replaced(text: str, name: str, table: str) -> str:
    """The page with `table` between the marks of `name`. Raises DeepumError where the page does not
    have them once.
    """
    marks = re.compile(rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)", re.DOTALL)
    if len(marks.findall(text)) != 1:
        raise DeepumError(
            f"{name}: the page does not have one part of this name; write <!-- {name}: begin --> "
            f"and <!-- {name}: end --> once"
        )
    return marks.sub(lambda found: f"{found[1]}{table}\n{found[2]}", text)


def markdown(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table of Markdown."""
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
    shown = [f"| {' | '.join(row)} |" for row in escaped]
    return "\n".join([shown[0], "|" + "---|" * len(head), *shown[1:]])
