"""Launches to come are placed, in plain Python: what native/core/placement/chain_planner.cpp does."""

from __future__ import annotations

from reference_chain import PROVEN, Chain
from reference_commands import HISTORY
from reference_history import Link
from reference_memory import Memory

FETCHED_AHEAD = 3072  # launches


class Ahead(Chain):
    """When the program waits and soon after, and what there is room for while the host runs ahead."""

    def place_ahead(self, most: int) -> None:
        if self.settings.prediction == HISTORY:
            self.claim_ahead(most)
            self.reserve_ahead(most)
            for _, memory in sorted(self.devices.items()):
                self.make_reserved_room(memory)
        trusted = self.trusted()
        for _ in range(most):
            if self.placed >= trusted or not self.place_next():
                break
        self.promised = self.placed

    def fetch_ahead(self, memory: Memory) -> None:
        """For what is free, or has died, and is not needed on the way."""
        if not memory.by_next_use or not self.settings.pre_eviction or self.settings.prediction != HISTORY or not memory.under_pressure():
            return
        self.fetching_ahead = True
        until = min(self.trusted(), FETCHED_AHEAD)
        for _ in range(self.settings.chain_steps):
            if self.placed >= until or not self.place_next():
                break
        self.fetching_ahead = False

    def place_next(self) -> bool:
        link = self.chain[self.placed]
        if self.fullest > self.position and self.position + self.placed + 1 > self.fullest:
            return False
        known = link.id >= 0 and self.by_id[link.id].launches >= PROVEN
        if not known and self.settings.prediction != HISTORY:
            return False
        self.count_growth(link)
        if known:
            self.doubt_after, self.sparse = self.doubt(self.by_id[link.id]), self.by_id[link.id].sparse
            spans = self.locate(self.by_id[link.id], self.placed + 1)
            if not self.place(spans, self.position + self.placed + 1, actual=False):
                return False
        self.placed += 1
        return True

    def count_growth(self, link: Link) -> None:
        if not link.counted and link.place is not None:
            past = self.history.launches[link.place]
            link.device, link.growth, link.counted = past.device, past.needs(), True

    def growth_ahead(self, memory: Memory) -> tuple[int, int]:
        """Blocks there will be besides, on the way through the launches that are placed: at most, and at last more than at least."""
        content = most = least = 0
        for link in self.chain:
            if link.counted and self.memory(link.device) is memory:
                content += link.growth
                most, least = max(most, content), min(least, content)
        return most, content - least
