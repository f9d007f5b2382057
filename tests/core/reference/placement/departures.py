"""Blocks leave a device by the timing rule: an eviction waits for its victim's last use, a discard
for all that was launched, and both for the block's moves before.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from reference.clock import Clock
from reference.command_stream import UNSET_READ_MOSTLY, After, CommandStream
from reference.memory.um_block import Access, UmBlock
from reference.placement.device_memory import Devices

LONG_PAST = 4096  # launches


class Exit(Enum):
    EVICT = 0  # its content is copied to the host
    DROP = 1  # the host has the same content
    DISCARD = 2  # its content is not needed


class TransferRule:
    """How a block comes and goes, where it is no plain transfer."""

    # It is about to be brought for that.
    def before_entry(self, block: UmBlock, access: Access) -> None: ...
    # It leaves in that way; the command was given.
    def after_exit(self, block: UmBlock, way: Exit) -> None: ...

    def exit(self, _block: UmBlock) -> Exit | None:
        """How it leaves; None: this rule does not say."""
        return None


@dataclass
class Streams:
    latest: int = 0  # streams that the latest eviction waits for, a bit each
    mixed_at: int = 0  # launch at which evictions last waited for different streams


class Departures:
    def __init__(self, now: Clock, commands: CommandStream, devices: Devices, sorts: bool) -> None:
        self.now, self.commands, self.devices = now, commands, devices
        # By next use they leave in the order of last use: what was used last would hold up the
        # others.
        self.sorts = sorts
        self.rules: list[TransferRule] = []  # the first that says how a block leaves decides
        self.leaving: list[tuple[UmBlock, Exit]] = []
        self.used_streams = 0  # by launches so far, a bit each
        self.streams: dict[int, Streams] = {}  # by device

    def exit_of(self, block: UmBlock) -> Exit:
        return next(
            (way for rule in self.rules if (way := rule.exit(block)) is not None), Exit.EVICT
        )

    def evict(self, block: UmBlock, for_launch: int) -> None:
        way = self.exit_of(block)
        self.devices.of(block).drop(block)
        self.leave(block, way, for_launch)

    def collect(self, block: UmBlock, way: Exit | None = None) -> None:
        """One of several that leave at once: its space is free from now on, the commands are given
        by flush.
        """
        self.leaving.append((block, way or self.exit_of(block)))
        self.devices.of(block).drop(block)

    def any_copied(self) -> bool:
        return any(way is Exit.EVICT and not block.dead for block, way in self.leaving)

    def flush(self, for_launch: int) -> None:
        if self.sorts:
            self.leaving.sort(key=lambda one: (not one[0].dead, one[0].last_use))
        for block, way in self.leaving:
            self.leave(block, way, for_launch)
        self.leaving = []

    def leave(self, block: UmBlock, way: Exit, for_launch: int) -> None:
        """What was dropped leaves the device: READ_MOSTLY ends before what the host lacks is
        copied, or nothing would be.
        """
        residency = self.devices.of(block).residency
        residency.end_filling()
        if not block.populated:
            return
        if not block.dead:
            block.left_since = True
            block.evicted_for = for_launch
        if way is Exit.DISCARD:
            self.discard(block)
            residency.discarded.append((block.discard, max(block.died, block.last_use)))
        else:
            self.note_streams(block)
            duplicate = block.read_mostly
            behind = (
                max(block.move_in, block.move_out)
                if way is Exit.DROP or duplicate
                else block.move_in
            )
            after = After(block.last_use, block.streams, behind)
            if way is Exit.DROP:
                self.commands.move("drop", block, after)
            else:
                self.commands.move("evict", block, after, UNSET_READ_MOSTLY if duplicate else 0)
            residency.evicted.append((block.move_out, block.last_use))
        for rule in self.rules:
            rule.after_exit(block, way)

    def discard(self, block: UmBlock) -> None:
        """Behind all that was launched when it died, and behind its moves."""
        after = After(
            max(block.died, block.last_use), self.used_streams, max(block.move_in, block.move_out)
        )
        self.commands.move("discard", block, after)
        block.populated = False

    def note_streams(self, victim: UmBlock) -> None:
        used_on = victim.streams
        if victim.last_use and used_on:
            streams = self.streams.setdefault(victim.device, Streams())
            several = used_on & (used_on - 1) != 0
            if streams.latest and (streams.latest != used_on or several):
                streams.mixed_at = self.now.launch
            streams.latest = used_on

    def wait_for_stream_alone(self, device: int, stream: int) -> bool:
        """Whether evictions from the device wait for launches of that stream alone, as far as is
        known.
        """
        streams = self.streams.get(device, Streams())
        long_past = not streams.mixed_at or self.now.launch - streams.mixed_at > LONG_PAST
        return streams.latest == 0 or (streams.latest == 1 << stream and long_past)
