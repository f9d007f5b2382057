"""One device's memory: what is believed to be there, in which order it leaves, and how much may be
fetched ahead.
"""

from __future__ import annotations

from deepum.core import CoreSettings
from reference.clock import Clock
from reference.memory.residency import ResidencyBelief
from reference.memory.um_block import UmBlock
from reference.placement.eviction_orders import NextUsePolicy, RecencyPolicy
from reference.placement.eviction_policy import EvictionPolicy
from reference.settings import HISTORY, LEAST_RECENTLY_MIGRATED, by_next_use

NARROWING = 4  # blocks by which a mistake narrows the window
LEAST_SHARE = 8  # part of the device that may be fetched ahead after all mistakes


class PrefetchWindow:
    """How many blocks may be fetched ahead at a time."""

    def __init__(self) -> None:
        self.withheld = 0  # blocks of the capacity
        self.mistakes = 0
        self.full = False  # it held a launch off since the latest one

    def begin(self, capacity: int) -> None:
        self.withheld = capacity // 2

    def admits(self, ahead: int, capacity: int) -> bool:
        is_open = ahead < capacity - min(self.withheld, capacity - capacity // LEAST_SHARE)
        self.full |= not is_open
        return is_open

    def note_mistake(self, ahead: int, capacity: int) -> None:
        self.mistakes += 1
        self.withheld = max(self.withheld, capacity - min(capacity, ahead)) + NARROWING

    def launch_passed(self) -> None:
        self.withheld = max(0, self.withheld - self.full)
        self.full = False


def eviction_policy(
    settings: CoreSettings, now: Clock, residency: ResidencyBelief
) -> EvictionPolicy:
    if by_next_use(settings):
        return NextUsePolicy(now, residency, settings.launch_queue)
    return RecencyPolicy(
        now, residency, settings.eviction_order == LEAST_RECENTLY_MIGRATED, settings.prefetch_degree
    )


class DeviceMemory:
    def __init__(self, ordinal: int, settings: CoreSettings, now: Clock) -> None:
        self.ordinal = ordinal
        self.residency = ResidencyBelief(settings, now)
        self.order = eviction_policy(settings, now, self.residency)
        # All resident blocks, in the order of their migration.
        self.driver_order: list[UmBlock] = []
        self.window = PrefetchWindow()
        # They expect once they are placed.
        self.window_counts_expected = settings.prediction != HISTORY and not by_next_use(settings)
        self.wanted = 0  # blocks that the launch being placed misses
        # Launch at which a block last left by a copy because a launch that was placed wanted its
        # space.
        self.demanded_at = 0

    def add(self, block: UmBlock) -> None:
        """It becomes resident."""
        self.residency.arrive(block)
        self.order.arrived(block)
        self.driver_order.append(block)

    def drop(self, block: UmBlock) -> None:
        """It leaves; its space is free."""
        self.order.departed(block)
        self.driver_order.remove(block)
        self.residency.depart(block)

    def renew(self, block: UmBlock) -> None:
        """It is prefetched where it is."""
        self.residency.renew(block)
        self.driver_order.remove(block)
        self.driver_order.append(block)
        self.order.renewed(block)

    def mark(self, block: UmBlock, clean: bool) -> None:
        """The host has what it has, or has it no longer."""
        self.residency.mark(block, clean)
        if block.resident:
            self.order.clean_changed(block)

    def ahead_blocks(self) -> int:
        """Those that the window limits."""
        return (
            sum(map(len, self.order.expected_blocks.values()))
            if self.window_counts_expected
            else self.order.prefetched
        )

    def note_mistake(self) -> None:
        self.window.note_mistake(self.ahead_blocks(), self.residency.capacity)


class Devices:
    """All devices that were heard of."""

    def __init__(self, settings: CoreSettings, now: Clock) -> None:
        self.settings, self.now = settings, now
        self.by_ordinal: dict[int, DeviceMemory] = {}

    def __getitem__(self, ordinal: int) -> DeviceMemory:
        if ordinal not in self.by_ordinal:
            self.by_ordinal[ordinal] = DeviceMemory(ordinal, self.settings, self.now)
        return self.by_ordinal[ordinal]

    def of(self, block: UmBlock) -> DeviceMemory:
        return self[block.device]

    def under_pressure(self) -> bool:
        return any(device.residency.under_pressure() for device in self.in_use())

    def in_use(self) -> list[DeviceMemory]:
        return [device for _, device in sorted(self.by_ordinal.items())]
