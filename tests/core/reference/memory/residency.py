"""What is believed to be on one device once all commands given so far are carried out, and the
space there.
"""

from __future__ import annotations

from collections import deque

from deepum.core import UM_BLOCK_BYTES, CoreSettings, Device, FreeMemory
from reference.clock import Clock
from reference.memory.um_block import UmBlock

# Of what is fetched, the part that is asked for again where it is believed to be, at most.
DOUBT_SHARE = 24
FREE_DOUBTS = 5  # and besides, as many times as much as is on the device
WORTH_READING = 8  # of the capacity, the part allocated from which on readings are wanted
READING_TOLERANCE = 8  # blocks
# Of the initial capacity, the part that an iteration's losses take off at most; launches.
LOSS_SHARE, LEAST_LOSS_WINDOW = 64, 256
LEAST_SHARE = 2  # and the part that they leave


class ResidencyBelief:
    def __init__(self, settings: CoreSettings, now: Clock) -> None:
        self.settings, self.now = settings, now
        self.known = False
        self.capacity = 0
        self.initial = 0  # blocks, as reported when the device came into use
        self.total = self.reported = 0  # that the device has; of these, as told
        self.budget: int | None = None  # given while the session runs
        self.withdrawn = 0  # by how much that was found to be too high
        self.filling = True  # nothing has left but with its allocation
        # By launch: its event, blocks that had become resident, and by command.
        self.fill_points: list[tuple[int, int, int]] = []
        self.loss_window_start = 0  # launch at which the count of the driver's own evictions began
        self.loss_window_blocks = 0  # capacity that was withdrawn because of these
        self.allocated = 0
        self.used = 0
        # Evictions whose space is not taken yet, and discards, each with the event of the launch
        # that it waits for.
        self.evicted: deque[tuple[int, int]] = deque()
        self.discarded: deque[tuple[int, int]] = deque()
        self.clean = 0
        self.migrations = 0  # blocks that became resident,
        self.commanded = 0  # of these by command,
        self.fetches = 0  # and of these with content
        self.freely_doubted = 0  # blocks asked for again without having been unconfirmed for long

    def free(self) -> int:
        return max(0, self.capacity - self.used)

    def under_pressure(self) -> bool:
        return self.known and self.allocated > self.capacity

    # Blocks come and go.

    def arrive(self, block: UmBlock) -> None:
        block.resident = True
        self.renew(block)

    def depart(self, block: UmBlock) -> None:
        self.mark(block, clean=False)
        block.resident = False
        self.used -= 1

    def renew(self, block: UmBlock) -> None:
        """It migrates to where it is."""
        self.migrations += 1
        block.migrated = self.migrations

    def mark(self, block: UmBlock, clean: bool) -> None:
        self.clean += clean - block.clean
        block.clean = clean

    def eviction_frees_first(self) -> bool:
        return bool(self.evicted) and (
            not self.discarded or self.evicted[0][1] < self.discarded[0][1]
        )

    def frees_by_evictions_only(self) -> bool:
        return not self.discarded and self.free() <= len(self.evicted)

    def take_space(self, earliest_first: bool) -> tuple[int, int]:
        """The eviction or the discard that makes it. That of discards goes first, or what is free
        sooner.
        """
        # The first to be free is what is not there.
        while len(self.evicted) + len(self.discarded) > self.free():
            (
                self.evicted
                if not self.discarded or self.eviction_frees_first()
                else self.discarded
            ).popleft()
        self.used += 1
        unclaimed = max(0, self.capacity - self.used)
        if unclaimed >= len(self.evicted) + len(self.discarded):
            return 0, 0
        if not self.discarded or (earliest_first and self.eviction_frees_first()):
            return self.evicted.popleft()[0], 0
        return 0, self.discarded.popleft()[0]

    def reclaim_space(self, discard: int) -> None:
        """For a block that did not leave."""
        self.used += 1
        if (space := next((one for one in self.discarded if one[0] == discard), None)) is not None:
            self.discarded.remove(space)

    # Doubt.

    def confirm(self, block: UmBlock) -> None:
        block.confirmed, block.fetches_at_confirmation = self.now.launch, self.fetches

    def shake(self, block: UmBlock) -> None:
        """A block beside it faulted."""
        block.confirmed, block.fetches_at_confirmation = 0, self.fetches

    def doubts(self, block: UmBlock, after: int) -> bool:
        """Whether a block is asked for again that was not confirmed for so many launches."""
        confirmed = block.confirmed
        if block.stays_on_host or self.now.launch - confirmed <= after:
            return False
        settled = confirmed > 0 and self.settings.pre_eviction
        if not settled or self.fetches - block.fetches_at_confirmation >= DOUBT_SHARE * self.used:
            return True
        free = self.freely_doubted < FREE_DOUBTS * self.used
        self.freely_doubted += free
        return free

    def doubt_all_once(self) -> None:
        """The driver surely made room by itself."""
        self.freely_doubted -= min(self.freely_doubted, self.used)

    # Capacity: as reported, as free memory tells while it fills, and by what the driver evicts
    # afterwards.

    def report_capacity(self, event: Device) -> None:
        if event.kind == "device":
            self.withdrawn = 0
        self.total = event.total_bytes // UM_BLOCK_BYTES
        self.reported = min(event.total_bytes, event.capacity_bytes) // UM_BLOCK_BYTES
        self.limit_capacity()
        self.known = True

    def set_budget(self, blocks: int | None) -> None:
        self.budget, self.withdrawn = blocks, 0
        self.limit_capacity()

    def limit_capacity(self) -> None:
        self.initial = self.reported if self.budget is None else min(self.budget, self.total)
        self.set_capacity(self.initial - min(self.initial, self.withdrawn))

    def set_capacity(self, blocks: int) -> None:
        self.capacity = blocks
        if self.used > self.capacity:
            self.doubt_all_once()

    def withdraw_to(self, capacity: int) -> None:
        self.withdrawn = max(0, self.initial - capacity)
        self.set_capacity(self.initial - self.withdrawn)

    def end_filling(self) -> None:
        self.filling = False
        self.fill_points = []

    def note_fill_point(self, learning: bool) -> bool:
        """True: readings of free memory are wanted."""
        if not self.filling or not self.now.decides:
            return False
        if not self.fill_points or self.fill_points[-1][1] != self.migrations:
            self.fill_points.append((self.now.event, self.migrations, self.commanded))
        return self.known and self.allocated * WORTH_READING >= self.capacity and learning

    def arrived_by(self, event: int) -> tuple[int, int]:
        """Blocks that had become resident by then, and those of them that did by command."""
        return next(
            (
                (arrived, commanded)
                for at, arrived, commanded in reversed(self.fill_points)
                if at <= event
            ),
            (0, 0),
        )

    def read_free_memory(self, event: FreeMemory) -> None:
        if not self.known or not self.filling:
            return
        gone = self.migrations - self.used

        def capacity(arrived: int) -> int:
            return max(
                0,
                max(0, arrived - gone)
                + event.free_bytes // UM_BLOCK_BYTES
                - event.reserve_bytes // UM_BLOCK_BYTES,
            )

        begun, commanded = self.arrived_by(event.begun)
        least, most = (
            capacity(self.arrived_by(event.completed)[0]),
            capacity(begun + self.commanded - commanded),
        )
        if self.capacity > most + READING_TOLERANCE:
            self.withdraw_to(most)
        elif self.capacity + READING_TOLERANCE < least and self.withdrawn:
            self.withdraw_to(least)

    def was_taken(self, block: UmBlock, reported: int) -> bool:
        """By the driver: it was to stay, and the faults of a launch that used it, up to event
        `reported`, have been told before.
        """
        stays = block.resident and block.move_in > block.move_out
        elsewhere = block.read_mostly or block.stays_on_host or block.mapped or block.of_program
        return self.under_pressure() and stays and not elsewhere and 0 < block.first_use <= reported

    def note_taken(self, blocks: int) -> None:
        launch = self.now.launch
        if not self.loss_window_start or launch - self.loss_window_start > max(
            self.now.iteration, LEAST_LOSS_WINDOW
        ):
            self.loss_window_start, self.loss_window_blocks = launch, 0
        most = max(0, self.initial // LOSS_SHARE - self.loss_window_blocks)
        off = min(blocks, most, max(0, self.capacity - self.initial // LEAST_SHARE))
        self.loss_window_blocks += off
        self.withdraw_to(self.capacity - off)
