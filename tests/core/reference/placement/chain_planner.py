"""Launches of the chain are placed: when the program waits and soon after, and what there is room
for while the host runs ahead.
"""

from __future__ import annotations

from dataclasses import dataclass

from deepum.core import CoreSettings
from reference.clock import Clock
from reference.memory.address_space import AddressSpace
from reference.memory.um_block import UmBlock, Use
from reference.placement.departures import Departures
from reference.placement.device_memory import DeviceMemory, Devices
from reference.placement.growth_forecast import GrowthForecast
from reference.placement.placer import Placer
from reference.placement.room_maker import EVICTION_BATCH, RoomMaker, Urgency
from reference.prediction.execution_table import Execution
from reference.prediction.launch_chain import LaunchChain, PredictedLaunch, Step
from reference.settings import HISTORY, SHORT_QUEUE, by_next_use

SOON_AFTER_WAIT = 8  # launches
SPARE_AHEAD = 3072  # launches that are placed into spare room, at most
# Part of an iteration, and launches, in which nothing left for want of space.
IDLE_SHARE, LEAST_IDLE = 64, 2


@dataclass(eq=False)
class ChainPlanner:
    settings: CoreSettings
    now: Clock
    chain: LaunchChain
    memory: AddressSpace
    devices: Devices
    departures: Departures
    growth: GrowthForecast
    room: RoomMaker
    placer: Placer
    # Launches of the chain from its front that
    expected: int = 0  # are expected to use their blocks, where these are resident,
    placed: int = 0  # were placed,
    promised: int = 0  # and keep their blocks: those behind were placed into spare room,
    reserved: int = 0  # and have room for their new content
    launches_since_wait: int = 0

    def forget(self) -> None:
        self.expected = self.placed = self.promised = self.reserved = 0
        self.growth.restarted()

    def followed(self, step: Step) -> None:
        """What became of the chain with the launch at hand, which is not placed yet."""
        if step.restarted:
            self.forget()
            return
        self.growth.passed(step.passed)
        self.expected = max(0, self.expected - step.passed)
        self.placed = max(0, self.placed - step.passed)
        self.promised = max(0, self.promised - step.passed)
        self.reserved = max(0, self.reserved - step.passed)

    def launched(self, device: DeviceMemory) -> None:
        """The launch at hand is placed, and the chain extended."""
        steps = self.settings.chain_steps
        if by_next_use(self.settings):
            self.expect_ahead(steps)
            if self.settings.prediction == HISTORY and device.residency.under_pressure():
                self.reserve_ahead(steps)
                self.evict_ahead(device)
        self.launches_since_wait += 1
        if self.launches_since_wait < SOON_AFTER_WAIT or self.settings.launch_queue < SHORT_QUEUE:
            self.place_some(steps)
        else:
            self.place_into_spare_room(device)

    def about_to_wait(self) -> None:
        self.launches_since_wait = 0
        self.place_some(len(self.chain.launches))

    def promised_until(self) -> int:
        return self.now.launch + self.promised

    def place_some(self, most: int) -> None:
        if self.settings.prediction == HISTORY:
            self.expect_ahead(most)
            self.reserve_ahead(most)
            for device in self.devices.in_use():
                self.make_reserved_room(device)
        self.place_until(self.chain.trusted(), most, Urgency.PLANNED)
        self.promised = self.placed

    def place_into_spare_room(self, device: DeviceMemory) -> None:
        """Nothing leaves for what is fetched for launches that come early enough by themselves."""
        fetches = (
            by_next_use(self.settings)
            and self.settings.pre_eviction
            and self.settings.prediction == HISTORY
        )
        if fetches and device.residency.under_pressure():
            self.place_until(
                min(self.chain.trusted(), SPARE_AHEAD), self.settings.chain_steps, Urgency.SPARE
            )

    def place_until(self, until: int, most: int, urgency: Urgency) -> None:
        for _ in range(most):
            if self.placed >= until or not self.place_next(urgency):
                return

    def known(self, launch: PredictedLaunch) -> Execution | None:
        return launch.execution if not launch.execution.given_up else None

    def place_next(self, urgency: Urgency) -> bool:
        """False: there is no room. What is fetched for launches behind the one with the most
        content would be in the way.
        """
        launch = self.now.launch + self.placed + 1
        if self.now.launch < self.growth.fullest < launch:
            return False
        execution = self.known(self.chain.launches[self.placed])
        if execution is None and self.settings.prediction != HISTORY:
            return False
        self.growth.count(self.placed)
        if execution is not None:
            accesses = execution.locate(self.memory, self.placed + 1)
            if not self.placer.place(accesses, self.placer.placement(launch, urgency, execution)):
                return False
        self.placed += 1
        return True

    def expect_ahead(self, most: int) -> None:
        """Other blocks leave first: by recency only where the same is swept over and over."""
        expects = by_next_use(self.settings) or self.growth.sweeping
        until = min(self.chain.trusted(), self.expected + most)
        while self.expected < until:
            execution = self.known(self.chain.launches[self.expected])
            self.expected += 1
            if execution is None or not expects:
                continue
            for access in execution.locate(self.memory, self.expected):
                for block in self.memory.blocks(access.span):
                    device = self.devices.of(block)
                    if (
                        device.residency.under_pressure()
                        and block.resident
                        and not block.read_in_place(execution.sparse)
                    ):
                        device.order.expected_one_day(block, self.now.launch + self.expected)

    def reserve_ahead(self, most: int) -> None:
        """What launches to come need besides what exists has no place yet, so its space is
        counted.
        """
        self.growth.find_fullest()
        until = min(
            self.chain.trusted(),
            self.reserved + most,
            max(0, self.growth.fullest - self.now.launch),
        )
        while self.reserved < until:
            self.growth.reserve(self.reserved)
            self.reserved += 1

    def lacking(self, device: DeviceMemory) -> int:
        """Blocks that are to be free besides, for what is reserved; at most 0 where room is not
        made for it.
        """
        reserved = self.growth.reserved_blocks(device.ordinal)
        if not reserved or not device.residency.under_pressure() or not self.settings.pre_eviction:
            return 0
        return (
            reserved + self.room.headroom(device) - device.residency.free() - len(device.order.dead)
        )

    def make_reserved_room(self, device: DeviceMemory) -> None:
        """While the program waits, by what is needed only when there is the most content, and
        before what is trusted ends.
        """
        late = max(self.growth.fullest, self.now.launch)
        while self.lacking(device) > 0:
            victim = device.order.needed_after(late, self.now.launch + self.chain.trusted())
            if victim is None:
                return
            self.departures.evict(victim, late)

    def evict_ahead(self, device: DeviceMemory) -> None:
        """While nothing is in the way: of what is needed only when there is the most content, what
        left before in this place.
        """
        idle = self.now.launch - device.demanded_at >= max(
            self.now.iteration // IDLE_SHARE, LEAST_IDLE
        )
        lacking = self.lacking(device) if idle else 0
        if lacking <= 0:
            return

        def left_before(block: UmBlock) -> bool:
            dies = block.next_use is Use.DIES and block.next_launch > self.now.launch
            left = (
                block.user is not None
                and not block.user.is_past
                and block.user.next[block.part].left
            )
            return left and not dies and not block.prefetched

        late = filter(
            left_before, device.order.expected_after(max(self.growth.fullest, self.now.launch))
        )
        for block in sorted(late, key=lambda block: block.last_launch)[
            : min(lacking, EVICTION_BATCH)
        ]:
            self.departures.collect(block)
        self.departures.flush(self.now.launch)
