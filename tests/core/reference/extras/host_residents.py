"""Tables of which kernels use a few rows stay on the host."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from deepum._core import lib

from deepum.core import CoreSettings
from reference.clock import Clock
from reference.command_stream import (
    SET_ACCESSED_BY,
    SET_PREFERRED_LOCATION,
    UNSET_ACCESSED_BY,
    UNSET_PREFERRED_LOCATION,
    CommandStream,
)
from reference.extras.copy_back import CopyBack
from reference.memory.address_space import AddressSpace, ContentListener
from reference.memory.um_block import Access, UmBlock
from reference.placement.device_memory import Devices
from reference.settings import REMOTE

LEAST_TABLE = 4  # UM blocks
PROVEN_SPARSE = 2  # sparse uses in a row


@dataclass(eq=False)
class HostResidents(ContentListener):
    settings: CoreSettings
    now: Clock
    commands: CommandStream
    memory: AddressSpace
    devices: Devices
    copy_back: CopyBack

    def observe(self, accesses: list[Access], flags: int) -> None:
        """Of the launch at hand. Copies say nothing about how a table is used."""
        for access in accesses if not flags & lib.DEEPUM_EXECUTE_COPY else ():
            blocks = self.memory.blocks(access.span)
            sparse = (
                bool(flags & lib.DEEPUM_EXECUTE_SPARSE)
                and len(blocks) >= LEAST_TABLE
                and not blocks[0].of_program
            )
            under_pressure = self.devices.of(blocks[0]).residency.under_pressure()
            may_advise = bool(self.settings.advice & REMOTE) and self.now.decides and under_pressure
            if sparse and may_advise:
                self.map_tables(blocks)
            elif not sparse and not under_pressure:
                self.unmap_tables(blocks)
            run: list[UmBlock] = []
            for block in blocks:
                if self.changes(block, sparse, may_advise):
                    block.advised, block.mapped, block.also_dense = (
                        sparse,
                        sparse and block.mapped,
                        not sparse,
                    )
                    run.append(block)
                else:
                    self.advise(run, sparse)
                    run = []
            self.advise(run, sparse)

    def changes(self, block: UmBlock, sparse: bool, may_advise: bool) -> bool:
        """Whether it goes to the host by that use, or comes back."""
        if block.of_group:
            return False
        if not sparse:
            block.sparse_uses = 0
            return block.advised
        block.sparse_uses = min(block.sparse_uses + 1, PROVEN_SPARSE)
        proven = block.sparse_uses == PROVEN_SPARSE
        return (
            may_advise
            and proven
            and not (block.stays_on_host or block.also_dense or block.advice_refused)
            and not block.pinned
        )

    def map_tables(self, blocks: list[UmBlock]) -> None:
        """What was there for an iteration is no result of a gather: it need not come for one, and
        comes for other launches.
        """
        for may, group in groupby(blocks, self.may_map):
            run = list(group) if may else []
            for block in run:
                if block.read_mostly:
                    self.copy_back.end_duplication(block)
                block.mapped = True
            self.commands.advise(run, SET_ACCESSED_BY)

    def unmap_tables(self, blocks: list[UmBlock]) -> None:
        """There is room for all: a launch that needs all of a table has it on the device."""
        for is_mapped, group in groupby(blocks, lambda one: one.mapped and not one.advised):
            run = list(group) if is_mapped else []
            for block in run:
                block.mapped = False
            self.commands.advise(run, UNSET_ACCESSED_BY)

    def may_map(self, block: UmBlock) -> bool:
        if (
            block.mapped
            or block.advice_refused
            or block.stays_on_host
            or block.pinned
            or block.dead
            or not block.populated
        ):
            return False
        return 0 < self.now.iteration < self.now.launch - block.filled

    def advise(self, run: list[UmBlock], on_host: bool) -> None:
        for advice in (
            (SET_ACCESSED_BY, SET_PREFERRED_LOCATION)
            if on_host
            else (UNSET_PREFERRED_LOCATION, UNSET_ACCESSED_BY)
        ):
            self.commands.advise(run, advice)

    def advice_failed(self, block: UmBlock) -> None:
        """The driver did not take it."""
        block.sparse_uses, block.advised, block.of_group, block.mapped, block.advice_refused = (
            0,
            False,
            False,
            False,
            True,
        )

    def content_begins(self, block: UmBlock) -> None:
        """Another tensor has its place."""
        block.sparse_uses, block.also_dense, block.of_group = 0, False, False
        if block.mapped and not block.advised:
            block.mapped = False
            self.commands.advise([block], UNSET_ACCESSED_BY)

    # For tensors that are tried on the host as a group.

    @staticmethod
    def may_stay_as_group(block: UmBlock) -> bool:
        return not (
            block.stays_on_host
            or block.advice_refused
            or block.dead
            or block.mapped
            or block.sparse_uses
            or block.pinned
        )

    @staticmethod
    def set_of_group(block: UmBlock, on_host: bool) -> None:
        block.advised = block.of_group = on_host
