"""What leaves, chosen while the program runs, without knowing what it does next: when memory is
short, what is cheap to compute again for its size and was not used for long; and nothing that costs
more than moving it would.
"""

from __future__ import annotations

import heapq
import math
from collections import deque

from deepum.recomputation.contents import Operation, Storage
from deepum.recomputation.rewriting import Rewriting

LEAST_BYTES = 1 << 20  # MegEngine's
_MOST_FOLLOWED = 64  # storages whose cost is found anew when one comes or goes


class Priced:
    """`budget_bytes`: of memory that is handed out, above which something is to leave. `price`: ns
    a byte that recomputation may take at most; 0: nothing is computed again. `window_bytes`: what
    was used since launches used so much stays: where memory is short all the time, it would be
    computed over and over.

    The score is DTR's, time to compute it again over its bytes and the time since its last use
    (Kirisame et al., ICLR'21), with the time of all that would have to be computed.
    """

    def __init__(self, budget_bytes: int, price: float = math.inf, window_bytes: int = 0) -> None:
        self.window_bytes = window_bytes
        self.budget_bytes = budget_bytes
        self.price = price
        self._candidates: dict[Storage, int | None] = {}  # ns to compute it again
        self._stale: set[Storage] = set()
        self._cheap: set[Storage] = set()

    def step(self, program: Rewriting, number: int) -> None:
        """What outlives a step stays."""
        self._candidates.clear()
        self._stale.clear()
        self._cheap.clear()
        program.changed.clear()

    def end(self, program: Rewriting, number: int) -> None:
        """Nothing."""

    def used(self, program: Rewriting, operation: Operation) -> None:
        """What it used may leave from now on."""
        for use in operation.uses:
            storage = use.storage
            if storage.step < program.step or storage.bytes < LEAST_BYTES:
                continue
            if use.makes is not None or storage not in self._candidates:
                self._candidates[storage] = None
                self._stale.add(storage)

    def room(self, program: Rewriting, size: int) -> None:
        """Drops until it fits the budget, or nothing is worth it."""
        excess = program.allocated_bytes + size - self.budget_bytes
        if excess <= 0 or self.price <= 0:
            return
        self._look(program)
        heap = [
            (self._score(program, storage), storage.number, storage)
            for storage in self._cheap
            if not program.held[storage].pins
            and program.clock_bytes - program.held[storage].used_bytes >= self.window_bytes
        ]
        heapq.heapify(heap)
        while heap and program.allocated_bytes + size > self.budget_bytes:
            _, number, storage = heapq.heappop(heap)
            self._look(program)
            if storage not in self._cheap:
                continue
            score = self._score(program, storage)
            if heap and score > heap[0][0]:
                heapq.heappush(heap, (score, number, storage))
                continue
            if not program.drop(storage):
                self._cheap.discard(storage)

    def _score(self, program: Rewriting, storage: Storage) -> float:
        known = self._candidates[storage]
        assert known is not None
        age = program.clock_ns - program.held[storage].used_ns
        return (known + 1) / (storage.bytes * (age + 1))

    def _look(self, program: Rewriting) -> None:
        """Finds anew what costs may have changed."""
        self._changes(program)
        for storage in self._stale:
            self._cheap.discard(storage)
            held = program.held.get(storage)
            if held is None:
                self._candidates.pop(storage, None)
                continue
            if storage not in self._candidates or held.block is None:
                continue
            found = program.recomputed(storage, self.price * storage.bytes)
            if found is not None:
                self._candidates[storage] = found.ns
                self._cheap.add(storage)
        self._stale.clear()

    def _changes(self, program: Rewriting) -> None:
        """What came or went, and what is made of it, through what is not there. Not all of it where
        that is much: the costs of the rest are those of before.
        """
        changed = {storage for storage, _ in program.changed}
        program.changed.clear()
        for storage in changed:
            self._follow(program, storage)

    def _follow(self, program: Rewriting, changed: Storage) -> None:
        known: set[Storage] = set()
        waiting = deque([changed])
        while waiting and len(known) < _MOST_FOLLOWED:
            storage = waiting.popleft()
            if storage in known:
                continue
            known.add(storage)
            self._stale.add(storage)
            for operation in storage.readers:
                if operation.step < program.step:
                    continue
                for use in operation.uses:
                    if use.makes is None or use.storage in known:
                        continue
                    held = program.held.get(use.storage)
                    if held is None or held.block is None:
                        waiting.append(use.storage)
                    else:
                        self._stale.add(use.storage)
