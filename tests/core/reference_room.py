"""What is known of how much a device holds, in plain Python: of native/core/residency.hpp what native/core/capacity.cpp uses."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Room:
    told: int = 0  # blocks, when the device came into use
    withdrawn: int = 0  # what that was found to be too high by
    fills: bool = True  # nothing has left but with its allocation
    filled: list[tuple[int, int, int]] = field(default_factory=list)  # by launch: sequence, blocks that had come, and by command
    commanded: int = 0  # blocks that came by command
    corrected_from: int = 0  # launch since which
    corrected: int = 0  # so many were withdrawn by what the driver took

    def leave(self) -> None:
        self.fills = False
        self.filled = []

    def behind(self, sequence: int) -> tuple[int, int]:
        """Blocks that had come by then, and those of them that came by command."""
        return next(((arrived, commanded) for at, arrived, commanded in reversed(self.filled) if at <= sequence), (0, 0))
