"""Dead blocks: their content is discarded where that of others would be copied."""

from __future__ import annotations

from deepum.core import CoreSettings
from reference.clock import Clock
from reference.memory.address_space import AddressSpace, ContentListener
from reference.memory.um_block import Place, UmBlock
from reference.placement.departures import Departures, Exit, TransferRule
from reference.placement.device_memory import Devices
from reference.settings import CORRELATION

SHORTEST_PAUSE, LONGEST_PAUSE = 64, 1 << 20  # launches without discards after one that failed


class Invalidation(ContentListener, TransferRule):
    def __init__(
        self,
        settings: CoreSettings,
        now: Clock,
        memory: AddressSpace,
        devices: Devices,
        departures: Departures,
    ) -> None:
        self.settings, self.now, self.memory, self.devices, self.departures = (
            settings,
            now,
            memory,
            devices,
            departures,
        )
        self.graphs = False  # some were launched, whose memory looks inactive
        self.is_refused = False  # the program's side carries no discards out
        self.next_attempt = 0  # launch before which none is tried again,
        self.pause = 0  # and the launches from the latest failure to that

    def drops_dead(self) -> bool:
        return bool(self.settings.invalidation) and not self.is_refused

    def discardable(self, block: UmBlock) -> bool:
        told = not self.graphs and not self.memory.block_mismatches and not block.of_program
        decides = (
            self.drops_dead()
            and self.settings.policy == CORRELATION
            and self.now.launch >= self.next_attempt
        )
        return block.dead and decides and told and self.devices.of(block).residency.under_pressure()

    def exit(self, block: UmBlock) -> Exit | None:
        return Exit.DISCARD if self.discardable(block) else None

    def content_died(self, block: UmBlock, died_now: bool) -> None:
        block.pinned = block.pinned and block.resident
        if block.resident:
            self.devices.of(block).order.content_died(block, self.drops_dead())
        elif block.populated and self.discardable(block):
            self.departures.discard(block)

    def content_begins(self, block: UmBlock) -> None:
        if block.resident and block.place is Place.DEAD:
            self.devices.of(block).order.will_be_used(block)

    def refused(self) -> None:
        if not self.is_refused:
            self.is_refused = True
            for device in self.devices.in_use():
                device.order.keep_dead()

    def failed(self) -> None:
        """The pause is twice as long as before where discards failed soon after the last one."""
        if self.now.launch < self.next_attempt:
            return
        in_a_row = 0 < self.pause > self.now.launch - self.next_attempt
        self.pause = min(2 * self.pause, LONGEST_PAUSE) if in_a_row else SHORTEST_PAUSE
        self.next_attempt = self.now.launch + self.pause
