"""How far a long piece of work is: a bar on standard error where that is a terminal, and nothing
elsewhere.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TextIO

import click

_CLEAR_LINE = "\r\x1b[2K"
_SHOW_CURSOR = "\x1b[?25h"  # click hides it


class Bar:
    """Counts parts that are done, of so many; of one there is nothing to show. `over` comes before
    anything else that is printed, lest it lands in the bar.
    """

    def __init__(self, parts: int, label: str = "") -> None:
        self._file: TextIO = sys.stderr
        shown = parts > 1 and self._file.isatty()
        self._bar = (
            click.progressbar(length=parts, label=label, file=self._file, width=30)
            if shown
            else None
        )
        if self._bar is not None:
            self._bar.render_progress()

    def done(self, parts: int = 1) -> None:
        """So many more."""
        if self._bar is not None:
            self._bar.update(parts)

    def over(self) -> None:
        """Takes the bar away until the next part is done."""
        if self._bar is not None:
            self._file.write(_CLEAR_LINE + _SHOW_CURSOR)
            self._file.flush()

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.over()
