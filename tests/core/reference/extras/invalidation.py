"""Dead blocks: their content is discarded where that of others would be copied."""

from __future__ import annotations

from deepum.core import CoreSettings
from reference.clock import Clock
from reference.memory.address_space import AddressSpace, ContentListener
from reference.memory.um_block import Place, UmBlock
from reference.placement.departures import Departures, Exit, TransferRule
from reference.placement.device_memory import Devices

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
        self.first = 0  # the first discard after the pause; 0: none was decided yet

    def drops_dead(self) -> bool:
        return bool(self.settings.invalidation) and not self.is_refused

    def discardable(self, block: UmBlock) -> bool:
        reliable = not self.graphs and not self.memory.block_mismatches and not block.of_program
        decides = self.drops_dead() and self.now.decides and self.now.launch >= self.next_attempt
        return (
            block.dead
            and decides
            and reliable
            and self.devices.of(block).residency.under_pressure()
        )

    def exit(self, block: UmBlock) -> Exit | None:
        return Exit.DISCARD if self.discardable(block) else None

    def after_exit(self, block: UmBlock, way: Exit) -> None:
        if way is Exit.DISCARD:
            self.note_discard(block)

    def note_discard(self, block: UmBlock) -> None:
        self.first = self.first or block.discard

    def content_died(self, block: UmBlock, died_now: bool) -> None:
        block.pinned = block.pinned and block.resident
        if block.resident:
            self.devices.of(block).order.content_died(block, self.drops_dead())
        elif block.populated and self.discardable(block):
            self.departures.discard(block)
            self.note_discard(block)

    def content_begins(self, block: UmBlock) -> None:
        if block.resident and block.place is Place.DEAD:
            self.devices.of(block).order.will_be_used(block)

    def refused(self) -> None:
        if not self.is_refused:
            self.is_refused = True
            for device in self.devices.in_use():
                device.order.keep_dead()

    def failed(self, discard: int) -> None:
        """The pause is twice as long as before where the first discard after the last one failed.
        Discards are made in order: where one fails behind others, those before it did not.
        """
        if self.now.launch < self.next_attempt:
            return
        soon = 0 < self.pause > self.now.launch - self.next_attempt
        in_a_row = soon and discard <= self.first
        self.pause = min(2 * self.pause, LONGEST_PAUSE) if in_a_row else SHORTEST_PAUSE
        self.next_attempt = self.now.launch + self.pause
        self.first = 0
