"""The launches expected to follow the latest one: predicted by the execution correlation table, or
by the history, which is the default.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import NamedTuple

from reference.prediction.execution_table import NO_CONTEXT, Execution, ExecutionTable, pushed
from reference.prediction.history import LaunchHistory, Recollection

SKIPPED, SKIPPED_KERNELS = 64, 8  # launches of the chain that may be missing
INSERTED = 8  # launches in a row that may be new
ASTRAY = 20  # of the latest 32 launches in the chain, those that lay elsewhere, by which it is left
KNOWN = 3  # agreement from which on half of the trust remains
TRUST = 2  # launches placed ahead for each prediction in a row that was right


class PredictedLaunch(NamedTuple):
    execution: Execution
    kernel: int
    place: int | None = None  # in the history


Chain = deque[PredictedLaunch]


class LaunchPredictor(ABC):
    @abstractmethod
    def next(self, previous: PredictedLaunch | None) -> PredictedLaunch | None:
        """The launch after that one, or after the latest one."""

    def find(self, chain: Chain, execution: Execution) -> int | None:
        """Which launch of the chain it is."""
        return 0 if chain[0].execution is execution else None

    def confirm(self, _passed: PredictedLaunch, _right: bool) -> bool:
        """The launch was found in the chain, exactly as its first one or not. False: the chain is
        to be made anew from another place.
        """
        return True

    def tolerate(self) -> bool:
        """The launch is not in the chain. True: the chain stands."""
        return False

    def lasting_trust(self) -> int:
        """The part of the trust, as a divisor, that remains then; 0: none."""
        return 0

    def observe(self, execution: Execution) -> None:
        """It was launched."""
        return

    def abandon(self) -> None:
        """The chain was given up."""
        return

    def begin(self) -> None:
        """The chain begins after the latest launch."""
        return

    def forget(self) -> None:
        """Nothing is known of the launches before."""
        self.abandon()


class TablePredictor(LaunchPredictor):
    def __init__(self, executions: ExecutionTable) -> None:
        self.executions = executions
        self.context = self.end = NO_CONTEXT  # of the latest launches, and of the chain's end

    def observe(self, execution: Execution) -> None:
        self.context = pushed(self.context, execution.id)

    def next(self, previous: PredictedLaunch | None) -> PredictedLaunch | None:
        if previous is None:
            self.end = self.context
        following = self.executions.predict(self.end)
        if following is None:
            return None
        self.end = pushed(self.end, following.id)
        return PredictedLaunch(following, following.kernel)

    def forget(self) -> None:
        self.context = NO_CONTEXT


class HistoryPredictor(LaunchPredictor):
    def __init__(self, history: LaunchHistory) -> None:
        self.history = history
        self.match = Recollection()  # of the latest launch, which the chain follows
        self.inserted = 0  # launches in a row that were not in the chain
        # Of the latest that were, whether each was not quite as predicted.
        self.astray: deque[bool] = deque(maxlen=32)

    def next(self, previous: PredictedLaunch | None) -> PredictedLaunch | None:
        before = self.match.place if previous is None else previous.place
        past = self.history.at(before + 1) if before is not None else None
        return (
            PredictedLaunch(past.execution, past.kernel, before + 1)
            if past is not None and before is not None
            else None
        )

    def find(self, chain: Chain, execution: Execution) -> int | None:
        links = list(chain)[:SKIPPED]
        if links[0].execution is execution or links[0].kernel == execution.kernel:
            return 0
        exact = [i for i, link in enumerate(links) if link.execution is execution]
        alike = [
            i for i, link in enumerate(links[:SKIPPED_KERNELS]) if link.kernel == execution.kernel
        ]
        return next(iter(exact or alike), None)

    def confirm(self, passed: PredictedLaunch, right: bool) -> bool:
        self.astray.append(not right)
        self.inserted = 0
        now, agreement = self.history.recalled, self.match.agreement
        if now.place == passed.place:
            self.match = Recollection(passed.place, max(agreement, now.agreement))
            return True
        self.match = Recollection(passed.place, agreement)
        return right or not (
            now.agreement > agreement or (now.agreement > KNOWN and sum(self.astray) >= ASTRAY)
        )

    def tolerate(self) -> bool:
        if self.agrees_better(self.history.recalled):
            return False
        self.inserted += 1
        return self.inserted <= INSERTED

    def agrees_better(self, now: Recollection) -> bool:
        if now.agreement != self.match.agreement or now.place is None or self.match.place is None:
            return now.agreement > self.match.agreement
        return now.place < self.match.place

    def lasting_trust(self) -> int:
        return 2 if self.history.recalled.agreement >= KNOWN else 0

    def abandon(self) -> None:
        self.match = Recollection()
        self.inserted = 0
        self.astray.clear()

    def begin(self) -> None:
        self.match = self.history.recalled


class Step(NamedTuple):
    """What became of the chain with a launch."""

    passed: int = 0  # launches that left its front
    restarted: bool = False  # it was given up


class LaunchChain:
    def __init__(self, predictor: LaunchPredictor, chain_steps: int, prefetch_degree: int) -> None:
        self.predictor = predictor
        self.chain_steps, self.prefetch_degree = chain_steps, prefetch_degree
        self.launches: Chain = Chain()
        self.right_in_a_row = 0

    def follow(self, execution: Execution) -> Step:
        if not self.launches:
            self.predictor.begin()
            return Step()
        at = self.predictor.find(self.launches, execution)
        if at is not None:
            right = at == 0 and self.launches[0].execution is execution
            self.right_in_a_row += right
            passed = [self.launches.popleft() for _ in range(at + 1)]
            if self.predictor.confirm(passed[-1], right):
                return Step(len(passed))
        elif self.predictor.tolerate():
            return Step()
        else:
            divisor = self.predictor.lasting_trust()
            self.right_in_a_row = self.right_in_a_row // divisor if divisor else 0
        self.launches.clear()
        self.predictor.abandon()
        self.predictor.begin()
        return Step(restarted=True)

    def extend(self) -> None:
        for _ in range(self.chain_steps):
            if len(self.launches) >= self.prefetch_degree:
                return
            launch = self.predictor.next(self.launches[-1] if self.launches else None)
            if launch is None:
                return
            self.launches.append(launch)

    def find(self, execution: Execution) -> int | None:
        return self.predictor.find(self.launches, execution) if self.launches else None

    def trusted(self) -> int:
        return min(len(self.launches), self.prefetch_degree, TRUST * self.right_in_a_row)

    def forget(self) -> None:
        self.launches.clear()
        self.predictor.forget()
