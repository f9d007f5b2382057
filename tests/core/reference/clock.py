"""The only notion of time, and whether commands are given now. All read it; only Reference and
IterationMeter change it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Clock:
    decides: bool = False  # commands are given: the policy says so, and nobody stopped it
    launch: int = 0  # the latest launch, counted from 1
    event: int = 0  # sequence of the event at hand
    work: int = 0  # UM blocks that launches touched, each launch being one more
    iteration: int = 0  # launches in an iteration; 0: not known
    period: int = 0  # launches in the iteration that is detected; 0: none is
