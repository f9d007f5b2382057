"""What is launched and what it touches: executions, and the execution ID correlation table."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from reference.memory.address_space import AddressSpace
from reference.memory.um_block import Access, NextUse, Run, RunUse

# IDs of the latest launches, the latest first.
Context = tuple[int | None, int | None, int | None, int | None]
NO_CONTEXT: Context = (None, None, None, None)


def pushed(context: Context, number: int) -> Context:
    return (number, *context[:3])


@dataclass(eq=False)
class Execution:
    id: int
    launches: int = 0
    last: int = 0  # the latest launch
    period: int = 0  # launches from the one before it to that; 0: there was none
    # What was before and what followed, the latest first.
    records: list[tuple[tuple[int | None, ...], int]] = field(default_factory=list)
    # Each with how many launches before the latest one it had been handed out.
    runs: dict[Run, int] = field(default_factory=dict)
    uses: dict[Run, RunUse] = field(default_factory=dict)  # of the runs
    kernel: int = 0  # the hash without the names of PyTorch's blocks
    sparse: bool = False  # it touches some rows of tables
    given_up: bool = False  # its ID is another's

    def touch(self, runs: list[tuple[Run, int]]) -> None:
        """By a launch: in order, each with how many launches before it had been handed out.

        As many runs are taken for those of the same arguments, which lie elsewhere now: each will
        be used again as soon.
        """
        ages = dict(reversed(runs))  # of a run that comes twice, the first
        order = list(dict.fromkeys(run for run, _ in runs))
        if order != list(self.runs):
            before = list(self.uses.values())
            self.forget_uses()
            known = before if len(before) == len(order) else [RunUse() for _ in order]
            self.uses = {
                run: RunUse(next=list(one.next), in_vain=one.in_vain)
                for run, one in zip(order, known, strict=True)
            }
        self.runs = {run: ages[run] for run in order}

    def knows_next(self) -> bool:
        return any(part.gap for use in self.uses.values() for part in use.next)

    def inherit(self, like: Execution) -> None:
        """The next uses of what was expected in its place: run by run, or those of the last run
        before that both have.
        """
        theirs = list(like.uses)
        before, start = [NextUse()] * 3, 0
        for i, (run, use) in enumerate(self.uses.items()):
            if run in theirs[start:]:
                start = theirs.index(run, start) + 1
                before = like.uses[run].next
                use.next = list(before)
            else:
                use.next = list(
                    like.uses[theirs[i]].next if len(theirs) == len(self.uses) else before
                )

    def forget_uses(self) -> None:
        for use in self.uses.values():
            use.is_past = True

    def locate(self, memory: AddressSpace, distance: int) -> list[Access]:
        """Its accesses, where they are now, for a launch so far ahead."""
        accesses: list[Access] = []
        for run, age in self.runs.items():
            # Handed out within the distance: what bears its name now is another.
            if age >= distance and (span := memory.locate(run)) is not None:
                accesses.append(Access(span, run, self.uses[run].now, self.uses[run].leaves()))
        return accesses


class ExecutionTable:
    def __init__(self, most_ids: int, most_records: int) -> None:
        self.most_ids, self.most_records = most_ids, most_records
        self.by_hash: OrderedDict[int, Execution] = OrderedDict()  # longest unused first
        self.by_id: dict[int, Execution] = {}

    def identify(self, execution_hash: int) -> Execution:
        """A new ID if need be: the one longest unused, where there are no more."""
        if execution_hash in self.by_hash:
            self.by_hash.move_to_end(execution_hash)
            return self.by_hash[execution_hash]
        number = len(self.by_hash)
        if number >= self.most_ids:
            _, old = self.by_hash.popitem(last=False)
            number = old.id
            old.forget_uses()
            old.given_up = True
        execution = Execution(number)
        self.by_hash[execution_hash] = self.by_id[number] = execution
        return execution

    def learn(self, context: Context, following: int) -> None:
        if context[0] is None:
            return
        before = context[1:]
        records = self.by_id[context[0]].records
        kept = [record for record in records if record[0] != before]
        if len(kept) == len(records):
            kept = kept[: self.most_records - 1]
        self.by_id[context[0]].records = [(before, following), *kept]

    def predict(self, context: Context) -> Execution | None:
        """What followed where most of the context agrees, the latest of several."""
        if context[0] is None:
            return None
        best, longest = None, -1
        for before, following in self.by_id[context[0]].records:
            agree = 0
            while agree < 3 and before[agree] == context[agree + 1]:
                agree += 1
            if agree > longest:
                best, longest = following, agree
        return self.by_id[best] if best is not None else None
