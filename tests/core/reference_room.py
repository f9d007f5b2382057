"""What is known of how much a device holds, in plain Python: what native/core/memory/capacity.cpp keeps."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Room:
    initial: int = 0  # blocks, as reported when the device came into use
    withdrawn: int = 0  # by how much that was found to be too high
    filling: bool = True  # nothing has left but with its allocation
    fill_points: list[tuple[int, int, int]] = field(default_factory=list)  # by launch: sequence, blocks that had come, and by command
    commanded: int = 0  # blocks that came by command
    loss_window_start: int = 0  # launch at which the current count of the driver's evictions began
    loss_window_blocks: int = 0  # capacity withdrawn because of these

    def leave(self) -> None:
        self.filling = False
        self.fill_points = []

    def behind(self, sequence: int) -> tuple[int, int]:
        """Blocks that had come by then, and those of them that came by command."""
        return next(((arrived, commanded) for at, arrived, commanded in reversed(self.fill_points) if at <= sequence), (0, 0))
