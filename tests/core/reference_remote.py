"""Tensors that are tried on the host, in plain Python: what native/core/extras/host_groups.cpp does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby

from reference_advice import REMOTE
from reference_block import UmBlock
from reference_commands import CORRELATION
from reference_memory import Allocation, Regularity
from reference_torch import TorchBlocks

from deepum.core import UM_BLOCK_BYTES, CoreSettings

LEAST_ITERATION = 64  # launches
STABLE, PATIENCE = 3, 16  # iterations of that length before a trial, and while another is not over
LEAST_TENSOR = 4  # UM blocks
LEAST_PART = 16  # of what does not fit
Tensor = tuple[list[UmBlock], int, int, Regularity]  # its UM blocks, bytes, launches before it was handed out, when it is used


def may_go_away(block: UmBlock) -> bool:
    return not (block.stays_away or block.refused or block.dead or block.mapped or block.sparse_uses)


class Remote(TorchBlocks):
    """Those of one size, used once an iteration, are left on the host for some iterations, and for good if these are shorter."""

    def __init__(self, settings: CoreSettings) -> None:
        super().__init__(settings)
        self.group = (0, 0)  # device, and bytes of a tensor
        self.tried: list[tuple[int, int]] = []
        self.sought: int | None = None  # launch

    def tensors(self, device: int) -> Iterator[Tensor]:
        for slot in sorted(self.allocations):
            one = self.allocations[slot]
            if one.of_program or one.device != device:
                continue
            if not one.reported:
                yield one.blocks, one.bytes, one.born, one.regularity
            for offset, block in sorted(one.active.items()):
                at = one.first_offset + offset
                whole = one.blocks[-(-at // UM_BLOCK_BYTES) : (at + block.bytes) // UM_BLOCK_BYTES]
                yield whole, block.bytes, block.born, block.regularity

    def find_group(self) -> bool:
        for device in sorted(self.devices):
            memory = self.memory(device)
            if not memory.under_pressure():
                continue
            total: dict[int, int] = defaultdict(int)
            unlike: set[int] = set()
            away = 0
            for blocks, size, born, regularity in self.tensors(device):
                if size < LEAST_TENSOR * UM_BLOCK_BYTES or not blocks:
                    continue
                total[size] += len(blocks)
                used = regularity.once_an_iteration(self.position, self.iteration) and self.position - born > 2 * self.iteration
                if not used or not may_go_away(blocks[0]):
                    unlike.add(size)
                away += len(blocks) if blocks[0].remote else 0
            over = memory.allocated - memory.capacity
            found = [
                (count, size)
                for size, count in total.items()
                if size not in unlike and (device, size) not in self.tried and over // LEAST_PART <= count <= over - min(over, away)
            ]
            if found:
                self.group = (device, min(found)[1])
                return True
        return False

    def try_remote(self) -> None:
        if not self.settings.advice & REMOTE or self.settings.policy != CORRELATION or not self.times_are_told:
            return
        trial = self.remote
        trial.launched(self.position, self.sequence, self.iteration)
        turn, trial.turn = trial.turn, None
        if turn is not None and turn != "keep":
            self.place_group(turn == "placed")
        if turn == "abandon":
            self.tried.pop()
        if turn in ("keep", "call back"):
            self.sought = None
        if self.iteration < LEAST_ITERATION or not trial.ready(STABLE if self.pace.over() else PATIENCE) or self.pace.under_way():
            return
        if self.sought is not None and self.position - self.sought < self.iteration:
            return
        self.sought = self.position
        if self.find_group():
            self.tried.append(self.group)
            trial.begin(self.pace.found())

    def place_group(self, away: bool) -> None:
        device, size = self.group
        memory = self.memory(device)
        leaving: list[tuple[UmBlock, bool]] = []

        def changes(block: UmBlock) -> bool:
            return may_go_away(block) if away else block.away

        for blocks in [blocks for blocks, bytes_, *_ in self.tensors(device) if bytes_ == size]:
            for changing, run in [(changing, list(run)) for changing, run in groupby(blocks, changes)]:
                if not changing:
                    continue
                for block in run:
                    if away and block.resident and self.settings.pre_eviction:
                        memory.drop(block)
                        leaving.append((block, False))
                    elif away and block.mostly:
                        self.collapse(block)
                    block.remote = block.away = away
                self.advise_remote(run, away)
        self.leave_in_order(memory, leaving, self.position)

    def note_regularity(self, allocation: Allocation, first: int, count: int, regularity: Regularity) -> None:
        """Of the launch at hand. What is used otherwise by now is called back by that."""
        if regularity.note(self.position + 1, self.iteration) and self.tried:
            for block in allocation.blocks[first : first + count]:
                block.away = False
