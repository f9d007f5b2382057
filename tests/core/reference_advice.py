"""Advice in plain Python: what native/core/extras/host_residents.cpp does."""

from __future__ import annotations

from itertools import groupby

from reference_block import UmBlock
from reference_commands import CORRELATION
from reference_placement import Placement
from reference_uses import Argument

from deepum.core import Command

COPY, SPARSE = 1, 8  # flags of a launch
REMOTE = 1
LEAST_TABLE = 4  # UM blocks
PROVEN = 2  # sparse uses in a row
SET_PREFERRED_LOCATION, UNSET_PREFERRED_LOCATION, SET_ACCESSED_BY, UNSET_ACCESSED_BY = 3, 4, 5, 6


class Advice(Placement):
    """Tables of which kernels use a few rows stay on the host."""

    def note_sparse_uses(self, arguments: list[Argument], flags: int) -> None:
        if flags & COPY:
            return
        for argument in arguments:
            allocation = self.allocations[argument.span[0]]
            sparse = bool(flags & SPARSE) and argument.span[2] >= LEAST_TABLE and not allocation.of_program
            under_pressure = self.memory(allocation.device).under_pressure()
            may_advise = self.settings.advice & REMOTE and self.settings.policy == CORRELATION and under_pressure
            if sparse and may_advise:
                self.map_tables(argument)
            run: list[UmBlock] = []
            for block in self.blocks(argument.span):
                if block.away:
                    changes = False
                elif sparse:
                    block.sparse_uses = min(block.sparse_uses + 1, PROVEN)
                    proven = block.sparse_uses == PROVEN and not (block.stays_away or block.dense or block.refused)
                    changes = may_advise and proven
                else:
                    block.sparse_uses = 0
                    changes = block.remote
                if changes:
                    block.remote, block.mapped, block.dense = sparse, sparse and block.mapped, not sparse
                    run.append(block)
                else:
                    self.advise_remote(run, sparse)
                    run = []
            self.advise_remote(run, sparse)

    def map_tables(self, argument: Argument) -> None:
        """What was there for an iteration is no result of a gather: it need not come for one, and comes for other launches."""
        for may, blocks in groupby(self.blocks(argument.span), self.may_map):
            run = list(blocks) if may else []
            for block in run:
                if block.mostly:
                    self.collapse(block)
                block.mapped = True
            self.advise(run, SET_ACCESSED_BY)

    def may_map(self, block: UmBlock) -> bool:
        if block.mapped or block.refused or block.stays_away or block.dead or not block.populated:
            return False
        return 0 < self.iteration < self.position - block.filled

    def forget_sparse_uses(self, block: UmBlock) -> None:
        """Another tensor has its place."""
        block.sparse_uses, block.dense, block.away = 0, False, False
        if block.mapped and not block.remote:
            block.mapped = False
            self.advise([block], UNSET_ACCESSED_BY)

    def forget_advice(self, block: UmBlock) -> None:
        """The driver did not take it."""
        block.sparse_uses, block.remote, block.away, block.mapped, block.refused = 0, False, False, False, True

    def advise_remote(self, run: list[UmBlock], remote: bool) -> None:
        for advice in (SET_ACCESSED_BY, SET_PREFERRED_LOCATION) if remote else (UNSET_PREFERRED_LOCATION, UNSET_ACCESSED_BY):
            self.advise(run, advice)

    def advise(self, run: list[UmBlock], advice: int) -> None:
        if not run:
            return
        allocation = self.allocations[run[0].slot]
        self.commands.append(
            Command(
                id=len(self.commands) + 1,
                cause=self.sequence,
                after_sequence=0,
                stream_mask=0,
                after_move=0,
                slot=run[0].slot,
                generation=allocation.generation,
                first_block=run[0].index,
                block_count=len(run),
                kind="advise",
                advice=advice,
                device=allocation.device,
                location=allocation.device if advice in (SET_ACCESSED_BY, UNSET_ACCESSED_BY) else -1,
            )
        )
        self.remember(self.commands[-1])
        self.last.pop("in", None)
