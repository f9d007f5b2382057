"""Placement: a launch's blocks are made resident, at hand or ahead, on the belief that holds when
all commands given so far are done.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from deepum.core import CoreSettings
from reference.clock import Clock
from reference.command_stream import BRINGS, NOTHING, After, CommandStream
from reference.memory.address_space import AddressSpace
from reference.memory.um_block import Access, UmBlock
from reference.placement.departures import Departures, TransferRule
from reference.placement.device_memory import DeviceMemory, Devices
from reference.placement.growth_forecast import GrowthForecast
from reference.placement.room_maker import RoomMaker, Urgency
from reference.prediction.execution_table import Execution
from reference.prediction.iteration_meter import LEAST_PERIOD
from reference.settings import by_next_use

LEAST_DOUBT = 16  # launches for which what is known to be there is not doubted


class Placement(NamedTuple):
    launch: int
    urgency: Urgency
    sparse: bool  # the launch touches some rows of tables
    doubt_after: int  # launches after which its blocks are doubted


@dataclass(eq=False)
class Placer:
    settings: CoreSettings
    now: Clock
    commands: CommandStream
    memory: AddressSpace
    devices: Devices
    departures: Departures
    growth: GrowthForecast
    room: RoomMaker
    rules: list[TransferRule] = field(default_factory=list)
    # By device, stream and kind: the latest move held for.
    held: dict[tuple[int, int, str], int] = field(default_factory=dict)
    holds: bool = False  # some launch was held, and holds have not ended since
    short_at: int = 0  # the latest launch with memory short, or that was held

    def placement(self, launch: int, urgency: Urgency, execution: Execution) -> Placement:
        """Blocks are doubted after a little less than the period, so that whatever was lost is back
        after an iteration.
        """
        most, period = self.settings.confidence_launches, execution.period
        return Placement(
            launch,
            urgency,
            execution.sparse,
            min(most, max(period - period // 8, LEAST_DOUBT)) if period else most,
        )

    def place(self, accesses: list[Access], placement: Placement) -> bool:
        """False: there is no room for a launch ahead; to be tried again."""
        self.claim_resident(accesses, placement)
        for access in accesses:
            for block in self.memory.blocks(access.span):
                if block.resident or self.does_without(block, placement):
                    continue
                if not self.bring(block, access, placement):
                    return False
        return True

    @staticmethod
    def does_without(block: UmBlock, placement: Placement) -> bool:
        return block.stays_on_host or block.read_in_place(placement.sparse)

    def claim_resident(self, accesses: list[Access], placement: Placement) -> None:
        """So that bringing the rest does not evict it."""
        self.room.claim += 1
        for device in self.devices.in_use():
            device.wanted = 0
        for block in [block for access in accesses for block in self.memory.blocks(access.span)]:
            device = self.devices.of(block)
            if not block.resident:
                device.wanted += not self.does_without(block, placement)
                continue
            block.claim = self.room.claim
            if not block.read_in_place(placement.sparse):
                self.note_use(device, block, placement)
            if self.decides(device) and device.residency.doubts(block, placement.doubt_after):
                self.ask_again(device, block)

    def decides(self, device: DeviceMemory) -> bool:
        return self.now.decides and device.residency.under_pressure()

    def ask_again(self, device: DeviceMemory, block: UmBlock) -> None:
        """A prefetch of what is there does not wait for a copy of it."""
        self.commands.move(
            "populate" if block.in_populates else "prefetch",
            block,
            After(move=0 if block.out_keeps else block.move_out),
        )
        device.residency.confirm(block)
        if not self.settings.pre_eviction:
            device.renew(block)

    def note_use(self, device: DeviceMemory, block: UmBlock, placement: Placement) -> None:
        if placement.urgency is Urgency.AT_HAND:
            device.order.used(block)
        else:
            device.order.expected(block, placement.launch)

    def bring(self, block: UmBlock, access: Access, placement: Placement) -> bool:
        device = self.devices.of(block)
        residency = device.residency
        decides, at_hand = self.decides(device), placement.urgency is Urgency.AT_HAND
        fetches, outgoing = block.populated, None
        if decides:
            if not at_hand and not device.window.admits(device.ahead_blocks(), residency.capacity):
                return False
            has_room, outgoing = self.room.make_room(
                device, placement.launch, placement.urgency, fetches
            )
            if not has_room:
                return at_hand  # a launch at hand that does not fit runs all the same
            if block.evicted_for > placement.launch:
                device.note_mistake()
        elif (
            residency.known and not residency.free() and (first := device.order.first()) is not None
        ):  # as the driver will do
            residency.end_filling()
            device.drop(first)
        block.evicted_for = 0
        self.growth.filled(block)
        block.filled = self.now.launch if block.fresh else block.filled
        block.fresh = False
        for rule in self.rules if decides else ():
            rule.before_entry(block, access)
        space = residency.take_space(fetches and by_next_use(self.settings))
        device.wanted = max(0, device.wanted - 1)
        device.add(block)
        block.claim = self.room.claim
        self.note_use(device, block, placement)
        block.first_use = 0
        if not at_hand:
            device.order.mark_prefetched(block)
        residency.commanded += decides
        residency.fetches += decides and fetches
        residency.confirm(block)
        block.streams = 0
        if decides:
            self.fetch(device, block, fetches, space, outgoing)
        return True

    def fetch(
        self,
        device: DeviceMemory,
        block: UmBlock,
        fetches: bool,
        space: tuple[int, int],
        outgoing: UmBlock | None,
    ) -> None:
        """Behind what frees its space, and behind its own move before. What has no content yet is
        populated.
        """
        evicted, discarded = space
        kind = "prefetch" if fetches or not self.settings.pre_eviction else "populate"
        self.commands.fence(device.ordinal, kind, max(block.discard, discarded))
        if self.commands.direction(evicted) != self.commands.direction(block.move_out):
            self.commands.fence(device.ordinal, kind, min(evicted, block.move_out))
        after = After(outgoing.last_use, outgoing.streams) if outgoing is not None else NOTHING
        self.commands.move(kind, block, after._replace(move=max(evicted, block.move_out)))
        block.fetch = block.move_in
        block.populated = True

    def hold(self, accesses: list[Access], stream: int) -> None:
        """The launch at hand starts once its blocks are there."""
        if not self.now.decides:
            return
        until: dict[tuple[int, int], int] = {}  # by device and kind
        for access in accesses:
            for block in self.memory.blocks(access.span):
                key = (block.device, BRINGS.index("populate" if block.in_populates else "prefetch"))
                until[key] = max(until.get(key, 0), block.fetch)
        for (device, kind), move in sorted(until.items()):
            held = (device, stream, BRINGS[kind])
            if move > self.held.get(held, 0):
                self.held[held] = move
                self.commands.hold_launch(
                    device, stream, move, not self.departures.wait_for_stream_alone(device, stream)
                )
                self.holds, self.short_at = True, self.now.launch

    def end_holds(self, iteration: int) -> None:
        """Where memory has not been short for two iterations of so many launches."""
        if self.devices.under_pressure():
            self.short_at = self.now.launch
        elif self.holds and self.now.launch - self.short_at > 2 * max(iteration, LEAST_PERIOD):
            self.commands.end_holds()
            self.holds = False
