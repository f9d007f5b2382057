"""How much content there will be, by what the history says of the iteration before, and at which
launch the most.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from itertools import accumulate

from reference.clock import Clock
from reference.memory.address_space import Allocation, ContentListener
from reference.memory.um_block import UmBlock
from reference.placement.device_memory import Devices
from reference.prediction.history import LaunchHistory, PastLaunch
from reference.prediction.launch_chain import LaunchChain

SWEEP = 16  # part of a device by which content may grow where the same is swept over and over
LOWER = 8  # part of what content rises by, by which it may be less than in another iteration
FALLEN = 4  # parts of what content has risen by, of which all but one die again in an iteration
SOON = 64  # launches that are looked at for new content


@dataclass
class Growing:
    """On a device, in blocks."""

    grown: int = 0  # with new content since the latest launch, less those that died,
    died_away: int = 0  # of which so many were not here
    reserved: int = 0  # needed besides what exists by the last launch that is reserved for,
    most_reserved: int = 0  # and by the one on the way there that needs most
    soon: int = 0  # with new content that the next launches need at most,
    soon_at: int = 0  # as was found at that launch


@dataclass
class Link:
    """Of a launch of the chain."""

    device: int = 0
    reserved: int = 0
    growth: int = 0  # once it is placed
    counted: bool = False


class GrowthForecast(ContentListener):
    def __init__(
        self, now: Clock, devices: Devices, chain: LaunchChain, history: LaunchHistory
    ) -> None:
        self.now, self.devices, self.chain, self.history = now, devices, chain, history
        self.growing: defaultdict[int, Growing] = defaultdict(Growing)
        self.links: deque[Link] = deque()  # of the chain's launches, as far as they were looked at
        # Launch at which there will be the most content; one past or at hand: none is known.
        self.fullest = 0
        # Content does not grow much until then: memory is swept over and over.
        self.sweeping = False
        self.found_at = 0  # launch at which that was found; 0: it is not known
        self.found_among = 0  # launches of the chain, then

    # What happens to content.

    def filled(self, block: UmBlock) -> None:
        self.growing[block.device].grown += block.fresh

    def content_died(self, block: UmBlock, died_now: bool) -> None:
        if died_now and not block.fresh:
            growing = self.growing[block.device]
            growing.grown -= 1
            growing.died_away += not block.resident

    def content_begins(self, block: UmBlock) -> None:
        self.growing[block.device].grown += block.dead and block.resident

    def memory_gone(self, allocation: Allocation) -> None:
        for block in allocation.blocks:
            self.content_died(block, died_now=not block.dead)

    def launched(self, device: int) -> None:
        """The launch at hand, on that device, is in the history: it gets what grew and died since
        the one before.
        """
        growing, past = self.growing[device], self.history.launches[-1]
        past.growth, past.died_away = growing.grown, growing.died_away
        growing.grown = growing.died_away = 0

    # The chain goes on.

    def passed(self, launches: int) -> None:
        for _ in range(launches):
            front = self.links.popleft() if self.links else Link()
            growing = self.growing[front.device]
            growing.reserved -= front.reserved
            growing.most_reserved = (
                growing.most_reserved - front.reserved
                if self.now.launch < self.fullest
                else growing.reserved
            )

    def restarted(self) -> None:
        self.links.clear()
        self.fullest = self.found_at = 0
        for growing in self.growing.values():
            growing.reserved = growing.most_reserved = 0

    def past(self, ahead: int) -> PastLaunch | None:
        """What a launch of the chain was before."""
        return self.history.at(self.chain.launches[ahead].place)

    def link(self, ahead: int) -> Link:
        while len(self.links) <= ahead:
            self.links.append(Link())
        return self.links[ahead]

    # Forecasts.

    def find_fullest(self) -> None:
        """Of the next iteration: where content has risen most, about as high as ever, before most
        of that dies again, or the chain ends. Where it never rises by much, where there is the
        most.
        """
        if self.knows_fullest():
            return
        pasts = [self.history.at(launch.place) for launch in self.chain.launches]
        capacity = self.devices[
            pasts[0].device if pasts and pasts[0] is not None else 0
        ].residency.capacity
        totals = list(accumulate(past.growth if past is not None else 0 for past in pasts))
        highest = max(totals, default=0)
        self.found_at, self.found_among, self.sweeping = self.now.launch, len(totals), True
        self.fullest = self.now.launch + (totals.index(highest) + 1 if highest > 0 else 0)
        least = most = 0
        at = self.now.launch
        for i, content in enumerate(totals):
            rise = most - least
            dies = (
                rise > 0
                and rise * SWEEP >= capacity
                and (most - content) * FALLEN >= rise * (FALLEN - 1)
            )
            if dies and (highest - most) * LOWER <= rise:
                break
            if dies or content < least:
                least = most = content
            elif content > most:
                most, at = content, self.now.launch + i + 1
        rise = most - least
        if rise > 0 and rise * SWEEP >= capacity and (highest - most) * LOWER <= rise:
            self.sweeping, self.fullest = False, at

    def knows_fullest(self) -> bool:
        passed = not self.sweeping and self.found_at < self.fullest <= self.now.launch
        return (
            self.found_at != 0
            and self.now.launch - self.found_at < self.found_among // 8
            and not passed
        )

    def reserve(self, ahead: int) -> None:
        """The growth of that launch of the chain has room from now on."""
        past = self.past(ahead)
        if past is not None:
            link, growing = self.link(ahead), self.growing[past.device]
            link.device, link.reserved = past.device, past.needs()
            growing.reserved += link.reserved
            growing.most_reserved = max(growing.most_reserved, growing.reserved)

    def reserved_blocks(self, device: int) -> int:
        growing = self.growing[device]
        return max(growing.reserved, growing.most_reserved, 0)

    def count(self, ahead: int) -> None:
        """That launch of the chain is being placed: its growth counts for what is fetched ahead."""
        past = self.past(ahead)
        if past is not None and not self.link(ahead).counted:
            link = self.link(ahead)
            link.device, link.growth, link.counted = past.device, past.needs(), True

    def placed(self, device: int) -> tuple[int, int]:
        """Blocks there will be besides, on the way through the launches that are placed: at most,
        and at last more than at least.
        """
        content = most = least = 0
        for link in self.links:
            if link.counted and link.device == device:
                content += link.growth
                most, least = max(most, content), min(least, content)
        return most, content - least

    def soon(self, device: int) -> int:
        """Blocks with new content that the next launches need at most."""
        growing = self.growing[device]
        if growing.soon_at != self.now.launch:
            growing.soon_at = self.now.launch
            pasts = [self.past(ahead) for ahead in range(min(len(self.chain.launches), SOON))]
            growth = [past.growth for past in pasts if past is not None and past.device == device]
            growing.soon = max(accumulate(growth, initial=0))
        return growing.soon
