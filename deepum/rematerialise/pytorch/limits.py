"""How much memory the tensors on a device may take, and what is done to keep to it."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch

from deepum.rematerialise.engine import BudgetError, Engine
from deepum.rematerialise.heuristics import Heuristic
from deepum.rematerialise.pytorch.measures import CallCost
from deepum.rematerialise.pytorch.workspace import workspace_of
from deepum.rematerialise.residency import Backend
from deepum.rematerialise.soft import LEAST_BYTES, WINDOW, SoftEngine

_GUESS = 2  # workspace of a call that was never made before, by the bytes of its results
_NEAR = 0.9  # of the budget
_LEAST_ROOM = 1 / 20  # of the budget, that is made for another try


class Limit(ABC):
    """budget: bytes. smallest: bytes of the smallest content that is evicted. engine: exists behind
    `begin`.
    """

    engine: Engine

    def __init__(self, budget: int, smallest: int) -> None:
        self.budget = budget
        self.smallest = smallest
        self.late = 0  # operators that made more than was foreseen

    @abstractmethod
    def begin(self, backend: Backend, device: torch.device) -> Engine:
        """The engine that chooses what leaves."""

    @abstractmethod
    def make_room(self, known: CallCost) -> None:
        """For the results and the workspace of a call. Raises BudgetError."""

    @abstractmethod
    def begin_call(self, known: CallCost) -> bool:
        """Right before the call; whether its workspace is measured."""

    @abstractmethod
    def end_call(self, known: CallCost) -> None:
        """Right behind it, if `begin_call` says so."""

    @abstractmethod
    def settle(self) -> None:
        """What the call made is known."""

    def make_more_room(self, known: CallCost) -> None:
        """The device itself is out of memory. Raises BudgetError."""
        engine = self.engine
        more = max(2 * known.bytes, int(engine.budget * _LEAST_ROOM))
        engine.make_room(engine.budget - engine.overhead - engine.used + more)


class StrictLimit(Limit):
    """A budget in bytes that nothing exceeds. sampling: see Residency."""

    def __init__(self, budget: int, heuristic: Heuristic, smallest: int, sampling: bool) -> None:
        super().__init__(budget, smallest)
        self._heuristic = heuristic
        self._sampling = sampling

    def begin(self, backend: Backend, device: torch.device) -> Engine:
        self._is_cpu = device.type == "cpu"
        self._workspace = workspace_of(device)
        self.engine = Engine(
            self.budget,
            backend,
            self._heuristic,
            smallest=self.smallest,
            sampling=self._sampling,
        )
        return self.engine

    def make_room(self, known: CallCost) -> None:
        """For a guess of the workspace the first time, if that can be had."""
        engine = self.engine
        if engine.used + known.room > engine.budget * _NEAR:
            allocated = self._workspace.allocated()
            if allocated is not None:
                engine.overhead = max(0, allocated - engine.used)
        if known.workspace is None:
            try:
                engine.make_room(known.bytes * (1 + _GUESS))
                return
            except BudgetError:
                pass
        engine.make_room(known.room)

    def begin_call(self, known: CallCost) -> bool:
        """The first time, and on a GPU, where it shows only as a peak, whenever it could be one
        that matters.
        """
        engine = self.engine
        if known.workspace is not None and (
            self._is_cpu or engine.used + known.room < engine.budget * _NEAR
        ):
            return False
        return self._workspace.begin()

    def end_call(self, known: CallCost) -> None:
        known.workspace = max(known.workspace or 0, self._workspace.end())

    def settle(self) -> None:
        if self.engine.used > self.engine.budget:
            self.late += 1
            self.engine.make_room(0)


class SoftLimit(Limit):
    """Under unified memory, which moves what is beyond the card."""

    engine: SoftEngine

    def __init__(self, card: int) -> None:
        super().__init__(card, LEAST_BYTES)
        self._window = int(card * WINDOW)

    def begin(self, backend: Backend, device: torch.device) -> Engine:
        self.engine = SoftEngine(self.budget, backend, window=self._window, smallest=self.smallest)
        return self.engine

    def set(self, price: float, budget: int) -> None:
        """Another price, nanoseconds a byte, and budget from now on."""
        self.budget = budget
        self.engine.set(price, budget)

    def make_room(self, known: CallCost) -> None:
        """For the results; what a call takes beside them is moved."""
        self.engine.make_room(known.bytes)

    def begin_call(self, known: CallCost) -> bool:
        return False

    def end_call(self, known: CallCost) -> None:
        """Nothing was measured."""

    def settle(self) -> None:
        """What was not foreseen is moved."""
