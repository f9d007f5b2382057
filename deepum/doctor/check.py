"""What a check says: one line, and what a program may want to know of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """`found` is what was found, `remedy` the next step (empty if there is nothing to do), `data`
    the same for programs: sizes in bytes, rates in 10^9 bytes a second, times in microseconds.
    """

    name: str
    level: Level
    found: str
    remedy: str = ""
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """For people."""
        return f"{self.level:<5} {self.name:<16} {self.found}" + (
            f"; {self.remedy}" if self.remedy else ""
        )

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)
