"""What was launched, in plain Python: execution IDs, the latest launches, and where it was before as it is now."""

from __future__ import annotations

from dataclasses import dataclass, field

from reference_block import NextUse, Run, RunUse

MASK = (1 << 64) - 1


def mix(value: int) -> int:
    """splitmix64."""
    value = value + 0x9E3779B97F4A7C15 & MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


@dataclass
class Execution:
    id: int
    launches: int = 0
    last: int = 0  # number of the latest launch
    period: int = 0  # launches from the one before it to that; 0: there was none
    records: list[tuple[tuple[int | None, ...], int]] = field(default_factory=list)  # most recent first
    runs: dict[Run, int] = field(default_factory=dict)  # each with how many launches before the latest one it had been handed out
    uses: dict[Run, RunUse] = field(default_factory=dict)  # of the runs
    kernel: int = 0  # the hash without the names of PyTorch's blocks
    sparse: bool = False  # it touches rows of tables

    def touch(self, runs: list[tuple[Run, int]]) -> None:
        """By a launch: in order, each with how many launches before it had been handed out.

        As many runs are taken for those of the same arguments, which lie elsewhere now: each will be used again as soon.
        """
        accesses = [run for run, _ in runs]
        ages = dict(reversed(runs))  # of a run that comes twice, the first
        order = list(dict.fromkeys(accesses))
        if order != list(self.runs):
            before = list(self.uses.values())
            self.forget_uses()
            known = before if len(before) == len(order) else [RunUse() for _ in order]
            self.uses = {run: RunUse(next=list(one.next), in_vain=one.in_vain) for run, one in zip(order, known, strict=True)}
        self.runs = {run: ages[run] for run in accesses}

    def knows_next(self) -> bool:
        return any(part.gap for use in self.uses.values() for part in use.next)

    def inherit(self, like: Execution) -> None:
        """The next uses of what was expected in its place: run by run, or those of the last run before that both have."""
        theirs = list(like.uses)
        before, start = [NextUse()] * 3, 0
        for i, (run, use) in enumerate(self.uses.items()):
            if run in theirs[start:]:
                start = theirs.index(run, start) + 1
                before = like.uses[run].next
                use.next = list(before)
            else:
                use.next = list(like.uses[theirs[i]].next if len(theirs) == len(self.uses) else before)

    def forget_uses(self) -> None:
        for use in self.uses.values():
            use.forgotten = True


@dataclass
class Past:
    """A launch that was."""

    hash: int
    kernel: int
    id: int
    device: int
    growth: int = 0
    died_away: int = 0

    def needs(self) -> int:
        """Blocks besides what was there before."""
        return self.growth + self.died_away


class History:
    """The latest launches, and where it was before as it is now. Never full, in what is compared."""

    def __init__(self) -> None:
        self.launches: list[Past] = []
        self.places: dict[int, tuple[int, int]] = {}  # by context modulo the size: the context and the latest place of it
        self.size = 0
        self.recalled: tuple[int | None, int] = (None, 0)

    def append(self, launch: Past) -> None:
        self.launches.append(launch)
        wanted = 64 * 4
        while wanted < 4 * len(self.launches):
            wanted *= 2
        if wanted > self.size:
            self.size, old = wanted, sorted(self.places.values(), key=lambda value: value[1])
            self.places = {context % wanted: (context, place) for context, place in old}
        self.recalled = (None, 0)
        for level, context in enumerate(self.contexts()):
            if context:
                known = self.places.get(context % self.size)
                if known is not None and known[0] == context:
                    self.recalled = (known[1], level + 1)
                self.places[context % self.size] = (context, len(self.launches) - 1)

    def contexts(self) -> list[int]:
        found = [0, 0, 0, 0]
        executions = 0
        for back in range(1, min(8, len(self.launches)) + 1):
            executions = mix(executions + self.launches[-back].hash & MASK)
            if back in (1, 4, 8):
                found[{1: 0, 4: 2, 8: 3}[back]] = executions + back & MASK
        if len(self.launches) >= 32:
            kernels = 0
            for past in self.launches[-32:]:
                kernels = kernels * 0x9E3779B97F4A7C15 + past.kernel & MASK
            found[1] = mix(kernels)
        return found


@dataclass
class Link:
    id: int  # -1: given up since
    kernel: int
    place: int | None
    reserved: int = 0
    device: int = 0
    growth: int = 0  # of content, in blocks, once it is placed
    counted: bool = False
