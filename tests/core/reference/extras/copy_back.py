"""Clean pages: what the host has as well leaves the device without a copy.

READ_MOSTLY makes a prefetch duplicate; what was written is written back ahead of need. A launch
that writes ends it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field

from deepum.core import CoreSettings
from reference.clock import Clock
from reference.command_stream import SET_READ_MOSTLY, After, CommandStream
from reference.extras.pace import PaceTrial
from reference.memory.address_space import AddressSpace, Allocation, ContentListener
from reference.memory.um_block import Access, RunUse, UmBlock, Use
from reference.placement.departures import Exit, TransferRule
from reference.placement.device_memory import DeviceMemory, Devices
from reference.prediction.iteration_meter import IterationMeter
from reference.prediction.use_tracker import UseTrials
from reference.settings import BY_OPERATORS, DUPLICATE

SETTLED_SHARE = 20  # part of an iteration without a write, after which none is expected
# Part in which nothing was copied for want of space, after which write-backs may go.
QUIET_SHARE = 8
SCAN = 256  # blocks looked at for a launch
LASTING_SHARE = 32  # part of an iteration's work, before what is written back at once is used again
HASTE = 2  # times the pace at which all would be written back within an iteration
MOST_IN_VAIN = 64


@dataclass
class WriteBack:
    """Of a device."""

    at_once: deque[UmBlock] = field(default_factory=deque)
    # Each with the launch that wrote it.
    once_settled: deque[tuple[UmBlock, int]] = field(default_factory=deque)
    evictions_lately: int = 0  # blocks, in the iteration before this one,
    evictions: int = 0  # and since
    counted_from: int = 0  # that launch
    evicted_at: int = 0  # launch at which a block last left by a copy

    def queues(self, block: UmBlock) -> bool:
        return any(other is block for other in self.at_once) or any(
            other is block for other, _ in self.once_settled
        )


@dataclass(eq=False)
class CopyBack(ContentListener, TransferRule):
    settings: CoreSettings
    now: Clock
    commands: CommandStream
    memory: AddressSpace
    devices: Devices
    iterations: IterationMeter
    trials: UseTrials
    pace: PaceTrial = field(default_factory=PaceTrial)  # whether clean pages pay
    reads_known: bool = False  # a kernel is known to only read something
    saved: int = 0  # blocks that were written back ahead of need, or dropped
    # By device.
    write_backs: defaultdict[int, WriteBack] = field(default_factory=lambda: defaultdict(WriteBack))

    def may_ever_duplicate(self) -> bool:
        known = self.settings.writes != BY_OPERATORS or self.reads_known
        return bool(self.settings.advice & DUPLICATE) and self.trials.observed and known

    def duplicates(self) -> bool:
        return self.may_ever_duplicate() and self.now.iteration > 0 and self.pace.on()

    def may_duplicate(self, block: UmBlock) -> bool:
        """What is left to us."""
        others = (
            block.stays_on_host
            or block.mapped
            or block.sparse_uses
            or block.dead
            or block.of_program
        )
        return not others and self.duplicates()

    # Whether the host has the same content.

    def lose_host_copy(self, block: UmBlock) -> None:
        block.ahead_of_need = False
        self.devices.of(block).mark(block, clean=False)

    def forget_duplicate(self, block: UmBlock) -> None:
        """It is in one place from now on."""
        block.read_mostly = False
        block.single_since = self.now.event
        self.lose_host_copy(block)

    def end_duplication(self, block: UmBlock) -> None:
        self.await_write_backs([block])
        self.commands.move("collapse", block, After(move=max(block.move_in, block.move_out)))
        self.forget_duplicate(block)

    def await_write_backs(self, blocks: list[UmBlock]) -> None:
        """Those still to be made would undo the end of a duplication, which is therefore done
        behind them.
        """
        duplicates = [block for block in blocks if block.read_mostly]
        awaited = [
            block.move_out
            for block in duplicates
            if block.out_keeps and block.move_out < block.move_in
        ]
        if awaited:
            self.commands.fence(blocks[0].device, "collapse", max(awaited), "copy")

    def write_faulted(self, blocks: list[UmBlock]) -> None:
        """What was written before the copy was made was copied with it."""
        for block in blocks:
            if block.read_mostly and block.valid_since <= self.trials.begun_at_all:
                self.judge(block, left=False)
                block.single_since = self.now.event
                self.lose_host_copy(block)

    def content_died(self, block: UmBlock, died_now: bool) -> None:
        self.lose_host_copy(block)

    def content_begins(self, block: UmBlock) -> None:
        block.written_at = self.now.launch  # what comes will be
        if block.read_mostly:
            self.end_duplication(block)

    def memory_gone(self, allocation: Allocation) -> None:
        queued, slots = (
            self.write_backs[allocation.device],
            {block.slot for block in allocation.blocks},
        )
        queued.at_once = deque(block for block in queued.at_once if block.slot not in slots)
        queued.once_settled = deque(one for one in queued.once_settled if one[0].slot not in slots)

    # Blocks come and go.

    def before_entry(self, block: UmBlock, access: Access) -> None:
        """It is duplicated if it outlives an iteration and was not written lately, or is known to
        leave before it is written again.
        """
        now = self.now
        if block.read_mostly and (access.use is Use.WRITES or not self.pace.on()):
            self.end_duplication(block)
        lived = now.launch - block.filled
        written_lately = (
            block.written_at and now.launch - block.written_at <= now.iteration // SETTLED_SHARE
        )
        settled = lived > now.iteration and not written_lately
        pays = settled or (access.leaves and lived > 0)
        reads_content = access.use is not Use.WRITES and block.populated
        waits = (
            self.commands.direction(block.move_in) == "collapse"
            or self.commands.direction(block.move_out) == "copy"
        )
        queued = self.write_backs[block.device]
        if not self.pace.on() and settled and reads_content and not queued.queues(block):
            queued.once_settled.append((block, now.launch))
        if (
            pays
            and not block.read_mostly
            and not waits
            and reads_content
            and block.written_at != now.launch
            and self.may_duplicate(block)
        ):
            self.commands.move(
                "advise", block, After(move=max(block.move_in, block.move_out)), SET_READ_MOSTLY, -1
            )
            block.read_mostly = True
        if block.read_mostly and block.populated:
            self.devices.of(block).mark(block, clean=True)
            block.valid_since = now.event

    def read_mostly_anywhere(self) -> bool:
        allocations = self.memory.allocations.values()
        return any(block.read_mostly for one in allocations for block in one.blocks)

    def exit(self, block: UmBlock) -> Exit | None:
        return Exit.DROP if block.clean else None

    def after_exit(self, block: UmBlock, way: Exit) -> None:
        queued = self.write_backs[block.device]
        queued.evictions += way is not Exit.DISCARD
        if way is Exit.DROP:
            self.judge(block, left=True)
            self.saved += 1
        elif way is Exit.EVICT:
            queued.evicted_at = self.now.launch
            self.forget_duplicate(block)

    def judge(self, block: UmBlock, left: bool) -> None:
        """If it was written back ahead of need: for nothing, if it was written before it left."""
        ahead, block.ahead_of_need = block.ahead_of_need, False
        writer = block.writer
        if ahead and writer is not None and not writer.is_past and self.pace.representative():
            writer.in_vain = (
                max(0, writer.in_vain - 1) if left else min(writer.in_vain + 1, MOST_IN_VAIN)
            )

    # Launches.

    def note_reads(self, accesses: list[Access]) -> None:
        self.reads_known = self.reads_known or any(one.use is Use.READS for one in accesses)

    def launched(self) -> None:
        if self.may_ever_duplicate():
            self.pace.launched(self.now.launch, self.now.event, self.now.iteration, self.saved)

    def before(self, accesses: list[Access]) -> None:
        """The launch at hand is about to write."""
        noted = self.duplicates() or self.read_mostly_anywhere()
        for access in accesses:
            if access.use is Use.WRITES and noted:
                blocks = self.memory.blocks(access.span)
                for block in blocks:
                    block.written_at = self.now.launch
                self.await_write_backs(blocks)
                for block in blocks:
                    if block.read_mostly:
                        self.end_duplication(block)

    def after(self, accesses: list[Access], device: int, stream: int) -> None:
        """What the launch at hand wrote, or may have, is queued for write-back, and what is due is
        written back behind it.
        """
        if self.duplicates():
            for access in accesses:
                self.queue(access)
            self.write_back(self.devices[device], stream)

    def queue(self, access: Access) -> None:
        wrote = access.use is Use.WRITES or access.creates
        pays = wrote and access.leaves and self.pays_at_once(self.memory.middle(access.span).writer)
        for block in self.memory.blocks(access.span):
            if access.use is Use.READS or not self.devices.of(block).residency.under_pressure():
                continue
            block.written_at = self.now.launch
            queued = self.write_backs[block.device]
            if queued.queues(block) or block.clean or not self.may_duplicate(block):
                continue
            if pays:
                queued.at_once.append(block)
            elif self.pays_once_settled(block):
                queued.once_settled.append((block, self.now.launch))

    def pays_at_once(self, writer: RunUse | None) -> bool:
        """What is used once more, late, and leaves then."""
        if writer is None or writer.is_past or writer.in_vain:
            return False
        return writer.stays_first(max(self.iterations.work // LASTING_SHARE, 1))

    def pays_once_settled(self, block: UmBlock) -> bool:
        """What outlives an iteration."""
        writer = block.writer
        in_vain = writer is not None and not writer.is_past and writer.in_vain
        return self.now.launch - block.filled > self.now.iteration and not in_vain

    def write_back(self, device: DeviceMemory, stream: int) -> None:
        """No more than is evicted in an iteration; what has settled not faster than all of it in a
        part of one.
        """
        queued, launch, iteration = (
            self.write_backs[device.ordinal],
            self.now.launch,
            self.now.iteration,
        )
        if launch - queued.counted_from >= iteration:
            queued.evictions_lately, queued.evictions = queued.evictions, 0
            queued.counted_from = launch
        queued.evictions_lately = max(queued.evictions_lately, queued.evictions)
        if launch - queued.evicted_at < iteration // QUIET_SHARE:
            return
        for _ in range(SCAN):
            if not queued.at_once or not device.residency.clean < queued.evictions_lately:
                break
            block = queued.at_once.popleft()
            if self.pays_at_once(block.writer):
                self.copy_out(device, block, stream)
        left = 1 + HASTE * queued.evictions_lately // iteration
        for _ in range(SCAN):
            if (
                not queued.once_settled
                or left == 0
                or not device.residency.clean < queued.evictions_lately
            ):
                break
            block, since = queued.once_settled[0]
            if launch - since < iteration // SETTLED_SHARE:
                break
            queued.once_settled.popleft()
            if (
                block.written_at > since
                and self.may_duplicate(block)
                and self.pays_once_settled(block)
            ):
                queued.once_settled.append((block, launch))
            elif self.pays_once_settled(block):
                left -= self.copy_out(device, block, stream)

    def copy_out(self, device: DeviceMemory, block: UmBlock, stream: int) -> bool:
        """False: not now."""
        now = self.now
        dirty = block.resident and block.populated and not block.clean
        soon_written = (
            block.next_use is Use.WRITES
            and now.launch < block.next_launch < now.launch + now.iteration // 2
        )
        if not dirty or soon_written or not self.may_duplicate(block):
            return False
        self.saved += 1
        self.commands.move(
            "copy_out",
            block,
            After(now.event, 1 << stream | block.streams, max(block.move_in, block.move_out)),
        )
        block.read_mostly = True
        block.valid_since = now.event
        block.ahead_of_need = True
        device.mark(block, clean=True)
        return True
