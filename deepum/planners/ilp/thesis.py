"""The integer program of Lee's thesis (SNU, section 4.4): each tensor has one of six states at each
operation, and an operation waits for the transfers that were begun with the one before.

Inequalities (1) to (16) are named as there. The text that is to be had has lost the right-hand
sides of (5) to (10) but for the one it explains in words (a copy follows stay-dirty only); they
follow from what the states mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from deepum.planners.ilp.pattern import Access, Pattern
from deepum.planners.ilp.program import PatternProgram
from deepum.planners.linear_program import Floats


class State(Enum):
    """Of a tensor at an operation. SWAP_OUT: copied, then freed; CLEAN_COPY: copied, kept."""

    SWAP_IN = "swap-in"
    SWAP_OUT = "swap-out"
    CLEAN_COPY = "clean-copy"
    STAY_CLEAN = "stay-clean"
    STAY_DIRTY = "stay-dirty"
    OUT = "out"


_MOVES = (State.SWAP_IN, State.SWAP_OUT, State.CLEAN_COPY)
_OUTWARD = (State.SWAP_OUT, State.CLEAN_COPY)
# (5) to (10): what a tensor may have been at the operation before.
BEFORE = {
    State.CLEAN_COPY: (State.STAY_DIRTY,),
    State.SWAP_OUT: (State.STAY_DIRTY,),
    State.SWAP_IN: (State.OUT, State.SWAP_OUT),
    State.STAY_CLEAN: (State.STAY_CLEAN, State.SWAP_IN, State.CLEAN_COPY),
    State.STAY_DIRTY: (State.STAY_DIRTY, State.STAY_CLEAN, State.SWAP_IN, State.CLEAN_COPY),
    State.OUT: (State.OUT, State.SWAP_OUT, State.STAY_CLEAN, State.CLEAN_COPY),
}


@dataclass(frozen=True)
class Form:
    """own_sums: transfers of the two directions run beside each other; else all of an operation's
    add up, as (14) to (16) have it. versions: hidden and exceed versions of all transfers, (11) to
    (15); else the stall alone, of which the optimum is the same. drops_dirty: the thesis's remark
    in chapter 7: what the next access overwrites is dropped without a copy, and none brings it.
    """

    own_sums: bool = True
    versions: bool = True
    drops_dirty: bool = False


AS_WRITTEN = Form()


def overwritten(pattern: Pattern, number: int) -> frozenset[int]:
    """Operations between an access of the tensor and one that overwrites it."""
    return frozenset(
        operation % len(pattern)
        for one in pattern.stretches(number)
        if not one.fetches
        for operation in range(one.start + 1, one.end)
    )


_Entries = list[tuple[int, float]]


@dataclass(frozen=True)
class _Operation:
    """Transfers that begin with an operation, by version: (column, program's time) each way."""

    inward: tuple[_Entries, ...]
    outward: tuple[_Entries, ...]


class ThesisProgram(PatternProgram):
    """That of a pattern, its index wrapping round. Where the program has given a tensor up, it has
    neither memory nor a state that costs anything, as after the thesis's free operations.
    """

    def __init__(self, pattern: Pattern, form: Form = AS_WRITTEN) -> None:
        super().__init__(pattern)
        self._form = form
        self._durations = [ns / self.unit_ns for ns in pattern.durations_ns]
        self._dead = [one.dead(len(pattern)) for one in pattern.tensors]
        self._droppable = [
            overwritten(pattern, number) if form.drops_dirty else frozenset()
            for number in range(len(pattern.tensors))
        ]
        versions = 2 if form.versions else 1
        # By tensor and operation: the columns of each state, of a transfer one for each version.
        self.state: list[list[dict[State, tuple[int, ...]]]] = [
            [
                {
                    state: tuple(
                        self.program.binary() for _ in range(versions if state in _MOVES else 1)
                    )
                    for state in State
                }
                for _ in pattern.durations_ns
            ]
            for _ in pattern.tensors
        ]
        for number in range(len(pattern.tensors)):
            self._tensor(number)
        self._operations = [self._transfers(operation) for operation in range(len(pattern))]
        for operation in range(len(pattern)):
            self.room(operation, self._held(operation))  # (2)
            if form.versions:
                self._versions(operation)
            else:
                self._stall_alone(operation)

    def evicted(self, tensor: int, stretch: int, values: Floats) -> bool:
        """Whether it is out at an operation of the stretch at which it has content."""
        count = len(self.pattern)
        return any(
            values[self.state[tensor][operation % count][State.OUT][0]] > 0.5
            for operation in self.stretches[tensor][stretch].inner
        )

    def columns(self, tensor: int, stretch: int) -> Sequence[int]:
        """The states from the access before to the operation before the access behind."""
        one = self.stretches[tensor][stretch]
        return [
            column
            for operation in range(one.start, one.end)
            for columns in self.state[tensor][operation % len(self.pattern)].values()
            for column in columns
        ]

    def stall(self, values: Floats) -> float:
        """What the transfers of each operation take beyond it, in ns."""
        found = 0.0
        for duration, one in zip(self._durations, self._operations, strict=True):
            inward, outward = (
                sum(values[column] * time for entries in way for column, time in entries)
                for way in (one.inward, one.outward)
            )
            took = max(inward, outward) if self._form.own_sums else inward + outward
            found += max(0.0, float(took) - duration)
        return found * self.unit_ns

    def states(self, values: Floats) -> list[list[State]]:
        """Of each tensor at each operation, in a solution."""
        return [
            [
                max(State, key=lambda state: sum(values[column] for column in at[state]))
                for at in operations
            ]
            for operations in self.state
        ]

    def start(self, states: Sequence[Sequence[State]]) -> dict[int, float]:
        """Whole numbers of a schedule, by tensor and operation."""
        values: dict[int, float] = {}
        for number, of_tensor in enumerate(states):
            for operation, chosen in enumerate(of_tensor):
                version = 1 if self._form.versions and self._exceeds(states, operation) else 0
                for state, columns in self.state[number][operation].items():
                    for index, column in enumerate(columns):
                        here = index == (version if len(columns) > 1 else 0)
                        values[column] = float(state is chosen and here)
        return values

    def _exceeds(self, states: Sequence[Sequence[State]], operation: int) -> bool:
        """Whether the transfers of the operation take longer than it does."""
        chosen = {
            column
            for number, of_tensor in enumerate(states)
            for column in self.state[number][operation][of_tensor[operation]]
        }
        sums = [
            sum(time for column, time in entries if column in chosen)
            for entries in self._sums(operation, 0)
        ]
        return max(sums) > self._durations[operation] * (1 + 1e-9)

    def _tensor(self, number: int) -> None:
        one, count = self.pattern.tensors[number], len(self.pattern)
        droppable = self._droppable[number]
        for operation in range(count):
            now, before = self.state[number][operation], self.state[number][operation - 1]
            self.program.row(_ones(now, *State), 1.0, 1.0)  # (1)
            if operation in self._dead[number]:
                self.program.row(_ones(now, State.STAY_DIRTY), 1.0, 1.0)
                continue
            for state, earlier in BEFORE.items():  # (5) to (10)
                drops = state is State.OUT and operation in droppable
                allowed = (*earlier, State.STAY_DIRTY) if drops else earlier
                if operation == 0 and count == 1 and state in allowed:
                    continue
                self.program.row(_ones(now, state) + _ones(before, *allowed, of=-1.0), most=0.0)
            access = one.accesses.get(operation)
            if access is Access.READ:  # (3)
                self.program.row(_ones(now, State.STAY_CLEAN, State.STAY_DIRTY), least=1.0)
            elif access is not None:  # (4)
                self.program.row(_ones(now, State.STAY_DIRTY), least=1.0)

    def _held(self, operation: int) -> _Entries:
        return [
            (column, float(one.bytes))
            for number, one in enumerate(self.pattern.tensors)
            if operation not in self._dead[number]
            for state, columns in self.state[number][operation].items()
            if state is not State.OUT
            for column in columns
        ]

    def _transfers(self, operation: int) -> _Operation:
        versions = range(2 if self._form.versions else 1)
        inward: tuple[_Entries, ...] = tuple([] for _ in versions)
        outward: tuple[_Entries, ...] = tuple([] for _ in versions)
        for number, operations in enumerate(self.state):
            here = operations[operation]
            free = operation in self._droppable[number]
            in_time = 0.0 if free else self.pattern.in_ns(number) / self.unit_ns
            out_time = self.pattern.out_ns(number) / self.unit_ns
            for version in versions:
                inward[version].append((here[State.SWAP_IN][version], in_time))
                outward[version].extend((here[state][version], out_time) for state in _OUTWARD)
        return _Operation(inward, outward)

    def _sums(self, operation: int, version: int) -> list[_Entries]:
        """What adds up: of each direction, or of both together."""
        one = self._operations[operation]
        inward, outward = one.inward[version], one.outward[version]
        return [inward, outward] if self._form.own_sums else [inward + outward]

    def _versions(self, operation: int) -> None:
        """(11) to (15), and the operation's part of (16)."""
        program, duration, tensors = (
            self.program,
            self._durations[operation],
            float(len(self.pattern.tensors)),
        )
        hidden, exceed, stall = program.binary(), program.binary(), program.column(1.0)
        for version, used in ((0, hidden), (1, exceed)):
            moves = [(at[operation][state][version], 1.0) for at in self.state for state in _MOVES]
            program.row([*moves, (used, -1.0)], least=0.0)  # (11)
            program.row([*moves, (used, -tensors)], most=0.0)  # (12)
        program.row([(hidden, 1.0), (exceed, 1.0)], most=1.0)  # (13)
        for entries in self._sums(operation, 0):
            program.row(entries, most=duration)  # (14)
        for entries in self._sums(operation, 1):
            program.row([*entries, (stall, -1.0), (exceed, -duration)], most=0.0)  # (16)
            if not self._form.own_sums:
                program.row([*entries, (exceed, -duration)], least=0.0)  # (15)

    def _stall_alone(self, operation: int) -> None:
        stall = self.program.column(1.0)
        for entries in self._sums(operation, 0):
            self.program.row([*entries, (stall, -1.0)], most=self._durations[operation])


def _ones(at: dict[State, tuple[int, ...]], *states: State, of: float = 1.0) -> _Entries:
    return [(column, of) for state in states for column in at[state]]
