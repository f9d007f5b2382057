"""Clean copies in plain Python: what native/core/extras/copy_back.cpp does.

What the host has as well leaves the device without a copy. READ_MOSTLY makes a prefetch duplicate; what was written is copied out ahead;
a launch that writes ends it.
"""

from __future__ import annotations

from reference_block import RunUse, SpanUse, UmBlock, Use
from reference_memory import Memory
from reference_uses import DUPLICATE, Argument, Uses

SET_READ_MOSTLY, UNSET_READ_MOSTLY = 1, 2
SETTLED_PART = 20  # of an iteration without a write, after which none is expected
QUIET_PART = 8  # in which nothing was copied for want of space, after which copies may go
COPY_SCAN = 256  # blocks looked at for a launch
LASTING_PART = 32  # of what is touched, before what is copied out at once is used again
HASTE = 2  # times the pace at which all would be copied out within an iteration


class Clean(Uses):
    """Duplicates, ended and made."""

    left = 0  # blocks that may be copied out behind the launch at hand

    def duplicates(self) -> bool:
        return bool(self.settings.advice & DUPLICATE) and self.faults_are_told and self.iteration > 0 and self.pace.on()

    def may_duplicate(self, block: UmBlock) -> bool:
        """What is left to us."""
        others = block.stays_away or block.mapped or block.sparse_uses or block.dead or self.allocations[block.slot].of_program
        return not others and self.duplicates()

    def single(self, block: UmBlock) -> None:
        """It is in one place from now on."""
        block.mostly = False
        block.single_since = self.sequence
        self.memory_of(block).uncopy(block)

    def collapse(self, block: UmBlock) -> None:
        self.await_copies([block])
        self.command("collapse", block, 0, 0, max(block.moved_in, block.moved_out))
        self.single(block)

    def await_copies(self, blocks: list[UmBlock]) -> None:
        """What would be undone by copies to the host that are still to be made is done behind them."""
        copies = [block for block in blocks if block.mostly and block.stayed and block.moved_out < block.moved_in]
        if copies:
            memory = self.memory_of(copies[0])
            self.await_move(memory, memory.ordinal, "collapse", max(block.moved_out for block in copies), "copy")

    def note_writes(self, arguments: list[Argument]) -> None:
        """The launch at hand is about to write."""
        for argument in arguments:
            if argument.use is Use.WRITES:
                self.await_copies(self.blocks(argument.span))
                for block in self.blocks(argument.span):
                    if block.mostly:
                        self.collapse(block)

    def prepare_duplicate(self, block: UmBlock, use: SpanUse) -> None:
        """It is about to be prefetched for that: what outlives an iteration and was not written lately, or is known to leave unwritten."""
        if block.mostly and (use.now is Use.WRITES or not self.pace.on()):
            self.collapse(block)
        lived = self.position - block.filled
        written_lately = block.written_at and self.position - block.written_at <= self.iteration // SETTLED_PART
        settled = lived > self.iteration and not written_lately
        pays = settled or (use.leaves and lived > 0)
        waits = self.direction(block.moved_in) == "collapse" or self.direction(block.moved_out) == "copy"
        if not self.pace.on() and settled and use.now is not Use.WRITES and block.populated and not self.queued(block):
            self.memory_of(block).to_settle.append((block, self.position))
        if pays and not block.mostly and not waits and use.now is not Use.WRITES and block.populated and self.may_duplicate(block):
            self.command("advise", block, 0, 0, max(block.moved_in, block.moved_out), SET_READ_MOSTLY, -1)
            block.mostly = True
        if block.mostly and block.populated:
            self.memory_of(block).copy(block)
            block.copied_since = self.sequence

    def queued(self, block: UmBlock) -> bool:
        memory = self.memory_of(block)
        return any(other is block for other in memory.to_copy) or any(other is block for other, _ in memory.to_settle)

    def pays_at_once(self, writer: RunUse | None) -> bool:
        """What is used once more, late, and leaves then."""
        if writer is None or writer.forgotten or writer.in_vain:
            return False
        return writer.stays_first(max(self.touched_lately // LASTING_PART, 1))

    def pays_once_settled(self, block: UmBlock) -> bool:
        """What outlives an iteration."""
        in_vain = block.writer is not None and not block.writer.forgotten and block.writer.in_vain
        return self.position - block.filled > self.iteration and not in_vain

    def queue_copies(self, arguments: list[Argument]) -> None:
        """What was written, or may have been, is to be copied out."""
        for argument in arguments:
            wrote = argument.use is Use.WRITES or argument.creates
            pays = wrote and argument.leaves and self.pays_at_once(self.middle(argument.span).writer)
            for block in self.blocks(argument.span):
                memory = self.memory_of(block)
                if not self.duplicates() or argument.use is Use.READS or not memory.under_pressure():
                    continue
                block.written_at = self.position
                if self.queued(block) or block.copied or not self.may_duplicate(block):
                    continue
                if pays:
                    memory.to_copy.append(block)
                elif self.pays_once_settled(block):
                    memory.to_settle.append((block, self.position))

    def copies(self, device: int) -> int:
        """Blocks that are there and on the host."""
        return sum(block.copied for one in self.allocations.values() if one.device == device for block in one.blocks)

    def copy_out_ahead(self, memory: Memory, device: int, stream: int) -> None:
        if not self.duplicates():
            return
        if self.position - memory.counted_from >= self.iteration:
            memory.evicted_lately, memory.evictions = memory.evictions, 0
            memory.counted_from = self.position
        memory.evicted_lately = max(memory.evicted_lately, memory.evictions)
        if self.position - memory.copied_away < self.iteration // QUIET_PART:
            return
        for _ in range(COPY_SCAN):
            if not memory.to_copy or not self.copies(device) < memory.evicted_lately:
                break
            block = memory.to_copy.popleft()
            if self.pays_at_once(block.writer):
                self.copy_out(memory, block, stream)
        self.left = 1 + HASTE * memory.evicted_lately // self.iteration
        for _ in range(COPY_SCAN):
            if not memory.to_settle or self.left == 0 or not self.copies(device) < memory.evicted_lately:
                break
            block, since = memory.to_settle[0]
            if self.position - since < self.iteration // SETTLED_PART:
                break
            memory.to_settle.popleft()
            if block.written_at > since and self.may_duplicate(block) and self.pays_once_settled(block):
                memory.to_settle.append((block, self.position))
            elif self.pays_once_settled(block):
                self.copy_out(memory, block, stream)

    def copy_out(self, memory: Memory, block: UmBlock, stream: int) -> None:
        if block.resident and block.populated and not block.copied and self.may_duplicate(block) and not self.soon_written(block):
            self.dropped += 1
            self.command("copy_out", block, self.sequence, 1 << stream | block.streams, max(block.moved_in, block.moved_out))
            block.mostly = True
            block.copied_since = self.sequence
            block.copied_ahead = True
            memory.copy(block)
            self.left -= 1

    def soon_written(self, block: UmBlock) -> bool:
        return block.next_use is Use.WRITES and self.position < block.awaited < self.position + self.iteration // 2

    def leave(self, block: UmBlock, copied: bool) -> None:
        """It leaves the device: without a copy, if the host has it; else READ_MOSTLY ends first, or nothing would be copied."""
        if copied:
            self.judge_copy(block, left=True)
            self.dropped += 1
            self.command("drop", block, block.use_sequence, block.streams, max(block.moved_in, block.moved_out))
            return
        advice, after = (UNSET_READ_MOSTLY, max(block.moved_in, block.moved_out)) if block.mostly else (0, block.moved_in)
        self.memory_of(block).copied_away = self.position
        self.command("evict", block, block.use_sequence, block.streams, after, advice)
        self.single(block)
