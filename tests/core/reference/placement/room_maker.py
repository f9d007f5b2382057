"""How room is made on a device: by evictions ahead of need, or by the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import Protocol

from deepum.core import CoreSettings
from reference.clock import Clock
from reference.command_stream import After, CommandStream
from reference.memory.um_block import UmBlock
from reference.placement.departures import Departures
from reference.placement.device_memory import DeviceMemory
from reference.placement.eviction_policy import VictimQuery
from reference.placement.growth_forecast import GrowthForecast
from reference.settings import HISTORY, SHORT_QUEUE, by_next_use

EVICTION_BATCH = 8  # blocks that leave at once
HEADROOM_SHARE = 8  # part of the device that is kept free, at most
SOON_SHARE = 64  # part that is kept of the dead, for content that comes soon
# Parts for what is fetched into spare room: the latter where the queue holds an iteration.
PREFETCHED_SHARE, PREFETCHED_LITTLE = 8, 32
SPARED = 16  # part that is left to what comes into being


class Urgency(Enum):
    AT_HAND = 0  # others leave for it
    # It is predicted: others leave for it, as far as the driver's queue makes that worth it.
    PLANNED = 1
    SPARE = 2  # it is predicted, and takes only room that is not needed on the way there


class Promises(Protocol):
    """What a planner has promised."""

    def promised_until(self) -> int: ...  # blocks that launches up to that one expect stay for them


# Whether there is any, and the block that the driver evicts for it.
Room = tuple[bool, UmBlock | None]


class RoomMaker(ABC):
    def __init__(
        self, settings: CoreSettings, now: Clock, departures: Departures, growth: GrowthForecast
    ) -> None:
        self.settings, self.now, self.departures, self.growth = settings, now, departures, growth
        self.promises: Promises
        self.claim = 0  # what the latest placement claims does not leave for it

    @abstractmethod
    def make_room(self, device: DeviceMemory, launch: int, urgency: Urgency, fetches: bool) -> Room:
        """For one more block for that launch, which has content or not."""

    def evict_surplus(self, device: DeviceMemory, *, all_may_leave: bool) -> None:
        """More is believed to be on the device than it holds."""
        return

    def headroom(self, _device: DeviceMemory) -> int:
        """Blocks that are kept free."""
        return 0

    def may_take_room(self, device: DeviceMemory, urgency: Urgency) -> bool:
        """What is only predicted takes what is not needed on the way there, and makes others leave
        only for a short queue.
        """
        modest = self.settings.prediction == HISTORY and self.settings.launch_queue >= SHORT_QUEUE
        reserved = self.growth.reserved_blocks(device.ordinal)
        spare = device.residency.free() + len(device.order.dead) > self.headroom(device) + reserved
        return urgency is Urgency.AT_HAND or not (modest or reserved > 0) or spare


class PreEviction(RoomMaker):
    """Dead blocks leave first, then those that the device's policy chooses."""

    def headroom(self, device: DeviceMemory) -> int:
        return min(self.settings.headroom_blocks, device.residency.capacity // HEADROOM_SHARE)

    def make_room(self, device: DeviceMemory, launch: int, urgency: Urgency, fetches: bool) -> Room:
        residency, headroom = device.residency, self.headroom(device)
        if urgency is Urgency.SPARE:
            return self.make_spare_room(device, launch), None
        if not self.may_take_room(device, urgency):
            return False, None
        frees_late = (
            by_next_use(self.settings)
            and residency.free() > headroom
            and residency.frees_by_evictions_only()
        )
        if frees_late and not (fetches and self.keeps_dead(device)):
            self.discard_dead(device, launch)
        if residency.free() <= headroom:
            self.make_batch(device, launch, urgency is Urgency.AT_HAND, fetches)
        return residency.free() > (0 if urgency is Urgency.AT_HAND else headroom), None

    def make_batch(self, device: DeviceMemory, launch: int, at_hand: bool, fetches: bool) -> None:
        """By next use all that the launch misses, at once."""
        residency, orders = device.residency, by_next_use(self.settings)
        batch = max(EVICTION_BATCH, device.wanted) if orders and at_hand else EVICTION_BATCH
        while residency.free() < batch + self.headroom(device):
            victim = None
            if fetches and self.keeps_dead(device):
                victim = self.next_victim(device, launch, last_resort=False, dead_may_leave=False)
            if victim is None:
                victim = self.next_victim(
                    device, launch, last_resort=at_hand and residency.free() == 0
                )
            if victim is None:
                break
            self.departures.collect(victim)
        if orders and self.departures.any_copied():
            device.demanded_at = self.now.launch
        self.departures.flush(launch)

    def next_victim(
        self, device: DeviceMemory, launch: int, last_resort: bool, dead_may_leave: bool = True
    ) -> UmBlock | None:
        query = VictimQuery(
            launch, self.promises.promised_until(), self.claim, last_resort, dead_may_leave
        )
        victim, mistake = device.order.victim(query)
        if mistake:
            device.note_mistake()
        return victim

    def keeps_dead(self, device: DeviceMemory) -> bool:
        """For content that comes soon, which needs no link; what is fetched takes other space."""
        dead = len(device.order.dead)
        if not by_next_use(self.settings) or self.settings.prediction != HISTORY or not dead:
            return False
        return dead <= min(
            self.growth.soon(device.ordinal), device.residency.capacity // SOON_SHARE
        )

    def make_spare_room(self, device: DeviceMemory, launch: int) -> bool:
        """What is free or dead, and not needed by what comes into being on the way there."""
        residency, headroom = device.residency, self.headroom(device)
        spared = residency.capacity // SPARED
        growth, rise = self.growth.placed(device.ordinal)
        share = (
            PREFETCHED_SHARE
            if self.now.iteration > self.settings.launch_queue
            else PREFETCHED_LITTLE
        )
        much = device.order.prefetched > residency.capacity // share
        if (much and self.now.period <= self.settings.launch_queue) or rise > spared:
            return False
        left = spared * (2 if much else 1)
        if residency.free() + len(device.order.dead) <= headroom + growth + left:
            return False
        if residency.free() <= headroom:
            self.discard_dead(device, launch)
        return residency.free() > headroom

    def discard_dead(self, device: DeviceMemory, launch: int) -> None:
        for block in [block for block in device.order.dead if block.claim != self.claim][
            :EVICTION_BATCH
        ]:
            self.departures.evict(block, launch)

    def evict_surplus(self, device: DeviceMemory, *, all_may_leave: bool) -> None:
        while device.residency.used > device.residency.capacity:
            victim = self.next_victim(device, self.now.launch, last_resort=all_may_leave)
            if victim is None:
                return
            self.departures.evict(victim, self.now.launch)


class DriverEviction(RoomMaker):
    """The driver evicts for what is fetched, in the order of its own list, where a prefetch of what
    is there counts as a migration.
    """

    def __init__(
        self,
        settings: CoreSettings,
        now: Clock,
        departures: Departures,
        growth: GrowthForecast,
        commands: CommandStream,
    ) -> None:
        super().__init__(settings, now, departures, growth)
        self.commands = commands

    def make_room(self, device: DeviceMemory, launch: int, urgency: Urgency, fetches: bool) -> Room:
        if not self.may_take_room(device, urgency):
            return False, None
        if device.residency.free():
            return True, None
        for first in list(device.driver_order):
            if first.claim != self.claim:
                device.residency.end_filling()
                device.drop(first)
                if not first.populated:
                    return True, None
                first.evicted_for = launch
                self.departures.note_streams(first)
                return True, first
            device.renew(first)
            self.commands.move("prefetch", first, After(move=first.move_out))
        return False, None
