"""What a snippet's run leaves."""

from __future__ import annotations

import running


class Ran(running.Ran):
    def calls(self) -> list[str]:
        calls: list[str] = self.facts()["calls"]
        return calls
