"""Advice in plain Python: what native/core/advice.cpp does."""

from __future__ import annotations

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
            run: list[UmBlock] = []
            for block in self.blocks(argument.span):
                if sparse:
                    block.sparse_uses = min(block.sparse_uses + 1, PROVEN)
                    proven = block.sparse_uses == PROVEN and not block.stays_away and not block.dense
                    changes = may_advise and proven
                else:
                    block.sparse_uses = 0
                    changes = block.remote
                if changes:
                    block.remote, block.dense = sparse, not sparse
                    run.append(block)
                else:
                    self.advise_remote(run, sparse)
                    run = []
            self.advise_remote(run, sparse)

    def advise_remote(self, run: list[UmBlock], remote: bool) -> None:
        if not run:
            return
        allocation = self.allocations[run[0].slot]
        for advice in (SET_ACCESSED_BY, SET_PREFERRED_LOCATION) if remote else (UNSET_PREFERRED_LOCATION, UNSET_ACCESSED_BY):
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
        self.last.pop("in", None)
