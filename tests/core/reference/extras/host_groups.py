"""Which tensors are tried on the host: those of one size, used once an iteration, for good if
iterations are shorter then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from deepum.core import UM_BLOCK_BYTES, CoreSettings
from reference.clock import Clock
from reference.extras.copy_back import CopyBack
from reference.extras.host_residents import HostResidents
from reference.extras.pace import RemoteTrial
from reference.memory.address_space import AddressSpace, Regularity
from reference.memory.um_block import UmBlock
from reference.placement.departures import Departures, Exit
from reference.placement.device_memory import DeviceMemory, Devices
from reference.settings import REMOTE

LEAST_ITERATION = 64  # launches
# Iterations of that length before a trial, and while that of clean pages is not over.
STABLE, PATIENCE = 3, 16
LEAST_TENSOR = 4  # UM blocks
LEAST_PART = 16  # of what does not fit


Group = tuple[int, int]  # device, and bytes of a tensor
# Its UM blocks, bytes, the launch after which it was handed out, when it is used.
Tensor = tuple[list[UmBlock], int, int, Regularity]


@dataclass(eq=False)
class HostGroups:
    settings: CoreSettings
    now: Clock
    memory: AddressSpace
    devices: Devices
    departures: Departures
    copy_back: CopyBack
    residents: HostResidents
    trial: RemoteTrial = field(default_factory=RemoteTrial)  # of the latest group
    group: Group = (0, 0)
    tried: list[Group] = field(default_factory=list)
    last_search: int | None = None  # launch
    timed: bool = False  # the GPU's times are told

    def tensors(self, device: int) -> Iterator[Tensor]:
        for _, allocation in sorted(self.memory.allocations.items()):
            if allocation.of_program or allocation.device != device:
                continue
            if not allocation.reported:
                yield allocation.blocks, allocation.bytes, allocation.born, allocation.regularity
            for offset, block in sorted(allocation.active.items()):
                yield (
                    allocation.whole_blocks(offset, offset + block.bytes),
                    block.bytes,
                    block.born,
                    block.regularity,
                )

    def smallest_group(self, device: DeviceMemory) -> Group | None:
        """That was not tried yet. All tensors of the size are alike, and together they have no more
        than does not fit.
        """
        total: dict[int, int] = defaultdict(int)
        unlike: set[int] = set()
        away = 0
        for blocks, size, born, regularity in self.tensors(device.ordinal):
            if size < LEAST_TENSOR * UM_BLOCK_BYTES or not blocks:
                continue
            total[size] += len(blocks)
            launch, iteration = self.now.launch, self.now.iteration
            alike = (
                regularity.once_an_iteration(launch, iteration) and launch - born > 2 * iteration
            )
            if not alike or not self.residents.may_stay_as_group(blocks[0]):
                unlike.add(size)
            away += len(blocks) if blocks[0].advised else 0
        over = device.residency.allocated - device.residency.capacity
        found = [
            (count, size)
            for size, count in total.items()
            if size not in unlike
            and (device.ordinal, size) not in self.tried
            and over // LEAST_PART <= count <= over - min(over, away)
        ]
        return (device.ordinal, min(found)[1]) if found else None

    def find_group(self) -> Group | None:
        groups = (
            self.smallest_group(device)
            for device in self.devices.in_use()
            if device.residency.under_pressure()
        )
        return next((group for group in groups if group is not None), None)

    def launched(self) -> None:
        """A trial begins, goes on, or ends."""
        if not self.settings.advice & REMOTE or not self.now.decides or not self.timed:
            return
        trial, now, pace = self.trial, self.now, self.copy_back.pace
        trial.launched(now.launch, now.event, now.iteration)
        turn, trial.turn = trial.turn, None
        if turn is not None and turn != "keep":
            self.place_group(turn == "placed")
        if turn == "abandon":
            self.tried.pop()
        if turn in ("keep", "call back"):
            self.last_search = None
        if (
            now.iteration < LEAST_ITERATION
            or not trial.ready(STABLE if pace.over() else PATIENCE)
            or pace.under_way()
        ):
            return
        if self.last_search is not None and now.launch - self.last_search < now.iteration:
            return
        self.last_search = now.launch
        if (group := self.find_group()) is not None:
            self.group = group
            self.tried.append(group)
            trial.begin(pace.found())

    def completed(self, event: int, at: int) -> None:
        self.timed |= at != 0
        self.trial.completed(event, at)

    def place_group(self, on_host: bool) -> None:
        """Tensors of the group go to the host, or those that did are the device's again."""

        def changes(block: UmBlock) -> bool:
            return self.residents.may_stay_as_group(block) if on_host else block.of_group

        device, size = self.group
        for blocks in [blocks for blocks, bytes_, *_ in self.tensors(device) if bytes_ == size]:
            for changing, run in [
                (changing, list(run)) for changing, run in groupby(blocks, changes)
            ]:
                for block in run if changing else ():
                    if on_host and block.resident and self.settings.pre_eviction:
                        self.departures.collect(block, Exit.EVICT)  # its space is what this is for
                    elif on_host and block.read_mostly:
                        self.copy_back.end_duplication(block)
                    self.residents.set_of_group(block, on_host)
                self.residents.advise(run if changing else [], on_host)
        self.departures.flush(self.now.launch)

    def note_use(self, blocks: list[UmBlock], regularity: Regularity) -> None:
        """Of the launch at hand. A tensor that is used otherwise by now is called back by that."""
        if regularity.note(self.now.launch + 1, self.now.iteration) and self.tried:
            for block in blocks:
                block.of_group = False
