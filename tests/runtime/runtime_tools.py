"""What a snippet's run leaves."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass
class Ran:
    code: int
    out: str
    err: str

    def facts(self) -> dict[str, Any]:
        """What the program told, all lines together."""
        assert self.code == 0, self.err
        told: dict[str, Any] = {}
        for line in self.out.splitlines():
            told.update(json.loads(line))
        return told

    def calls(self) -> list[str]:
        calls: list[str] = self.facts()["calls"]
        return calls
