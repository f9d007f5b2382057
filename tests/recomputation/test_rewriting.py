"""A rewritten program does what the program does: launch by launch it reads the same content, by a
second account that knows nothing of how it was made.
"""

from __future__ import annotations

import dataclasses

import pytest
from recomputing import Made, random_chooser, random_program, rewritten, training

from deepum.core import Block, Execute, events
from deepum.recomputation.account import disagreement
from deepum.recomputation.contents import Operation, Storage
from deepum.recomputation.priced import Priced
from deepum.recomputation.reading import items, refusal
from deepum.recomputation.rewriting import Rewriting
from deepum.trace import Trace, work
from deepum.trace.work import READ, WRITE


class Drops:
    """Drops the storages of those numbers behind the launch of that number."""

    def __init__(self, behind: int, *numbers: int) -> None:
        self.behind, self.numbers, self.count = behind, numbers, 0
        self.dropped: list[bool] = []

    def room(self, program: Rewriting, size: int) -> None:
        pass

    def used(self, program: Rewriting, operation: Operation) -> None:
        self.count += 1
        if self.count == self.behind:
            for storage in list(program.held):
                if storage.number in self.numbers:
                    self.dropped.append(program.drop(storage))

    def step(self, program: Rewriting, number: int) -> None:
        pass

    def end(self, program: Rewriting, number: int) -> None:
        pass


def launches(trace: Trace) -> int:
    return sum(isinstance(event, Execute) for event in events(trace.events))


def test_without_drops_it_is_the_same_to_the_byte() -> None:
    for made in (training(), random_program(1)):
        trace = made.trace()
        same, _ = rewritten(trace, made.ns, Priced(0, price=0))
        assert same.events == trace.events
        assert same.work == trace.work


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_whatever_is_dropped_launches_read_the_same(first: int) -> None:
    again = 0
    for seed in range(first, first + 20):
        made = random_program(seed)
        trace = made.trace()
        found, program = rewritten(trace, made.ns, random_chooser(seed))
        assert disagreement(trace, found) is None, seed
        assert launches(found) == launches(trace) + program.counters.launches
        again += program.counters.launches
    assert again > 100


def test_memory_is_given_back_and_computed_again_before_its_use() -> None:
    made = Made()
    made.new("a")
    made.run("make", writes="a", ns=7)
    made.new("b")
    made.run("work", writes="b")
    made.run("use", reads="ab")
    made.end_step()
    trace = made.trace()
    chooser = Drops(1, 1)
    found, program = rewritten(trace, made.ns, chooser)
    assert chooser.dropped == [True]
    assert (program.counters.launches, program.counters.ns, program.counters.drops) == (1, 7, 1)
    kinds = [event.kind for event in events(found.events) if isinstance(event, (Block, Execute))]
    assert kinds == [
        *("block_active", "execute", "block_inactive"),  # made, and dropped
        *("block_active", "execute"),  # other work
        *("block_active", "execute", "execute"),  # made again, and used
    ]
    assert disagreement(trace, found) is None


def test_a_chain_is_computed_again_through_what_the_program_gave_back() -> None:
    made = Made()
    for name in "abc":
        made.new(name)
    made.run("first", writes="a")
    made.run("second", reads="a", writes="b")
    made.run("third", reads="b", writes="c")
    made.free("b")
    made.run("use", reads="ac")
    made.end_step()
    trace = made.trace()
    found, program = rewritten(trace, made.ns, Drops(3, 1, 3))
    assert program.counters.launches == 3
    assert disagreement(trace, found) is None


def test_what_a_dropped_content_is_made_of_is_not_overwritten_before() -> None:
    """`w` cannot be made again, since what made it read what the host changed: before it is changed
    in place, what was computed from it comes back.
    """
    made = Made()
    for name in "wa":
        made.new(name)
    made.run("make w", writes="w")
    made.run("make a", reads="w", writes="a")
    made.run("update", changes="w")
    made.run("use", reads="aw")
    made.end_step()
    trace = made.trace()
    found, program = rewritten(trace, made.ns, Drops(2, 2))
    assert program.counters.launches in (1, 2), "from the old w, or from one made again"
    assert disagreement(trace, found) is None


def test_what_cannot_be_computed_again_stays() -> None:
    """Content from the host, and what the same launch changes in place beside it."""
    made = Made()
    for name in "hab":
        made.new(name)
    access = made.access("h", 0)
    made.program.writer.copy(1, access, made.blocks["h"].range, to_device=True)
    made.run("both", reads="h", writes="a", changes="b")
    made.run("again", reads="h", writes="a", changes="b")
    made.run("use", reads="hab")
    made.end_step()
    chooser = Drops(3, 1, 2)
    rewritten(made.trace(), made.ns, chooser)
    assert chooser.dropped == [False, False]


def test_the_account_notices_what_is_wrong() -> None:
    made = training()
    trace = made.trace()
    found, _ = rewritten(trace, made.ns, random_chooser(3))
    assert disagreement(trace, found) is None
    works = list(work.decode(found.work))
    launched = [at for at, one in enumerate(works) if one.kind == work.LAUNCH]
    noticed = 0
    for at in launched[5::7]:
        one = works[at]
        target = next((a for a in one.accesses if a.flags & READ), None)
        if target is None:
            continue
        other = next(
            (
                a
                for w in works
                for a in w.accesses
                if (a.slot, a.offset) != (target.slot, target.offset) and a.bytes >= target.bytes
            ),
        )
        changed = tuple(
            dataclasses.replace(a, slot=other.slot, offset=other.offset) if a is target else a
            for a in one.accesses
        )
        wrong = [*works]
        wrong[at] = dataclasses.replace(one, accesses=changed)
        damaged = Trace("damaged", found.events, b"".join(w.encode() for w in wrong))
        noticed += disagreement(trace, damaged) is not None
    assert noticed >= 3
    without = [one for at, one in enumerate(works) if at != launched[10]]
    assert disagreement(trace, Trace("cut", found.events, b"".join(w.encode() for w in without)))


def test_versions_and_recipes() -> None:
    made = Made()
    made.new("a", 4)
    made.launch("part", made.access("a", WRITE, 0, 2))
    made.launch("rest", made.access("a", WRITE, 2, 2))
    made.launch("over", made.access("a", WRITE))
    made.run("change", changes="a")
    made.end_step()
    operations = [one for one in items(made.trace(), made.ns) if isinstance(one, Operation)]
    storage: Storage = operations[0].uses[0].storage
    assert [(one.uses[0].reads, one.uses[0].makes) for one in operations] == [
        (None, 1),
        (1, 2),
        (None, 3),
        (3, 4),
    ]
    assert list(storage.recipe(2)) == operations[:2]
    assert list(storage.recipe(4)) == operations[2:]


def test_programs_that_cannot_be_followed() -> None:
    made = training()
    trace = made.trace()
    assert refusal(trace) is None
    assert refusal(Trace("", trace.events)) == "does not tell where its steps end"
    without = b"".join(one.encode() for one in list(work.decode(trace.work))[1:])
    assert refusal(Trace("", trace.events, without)) == (
        "does not tell what its launches read and write"
    )
    assert refusal(Trace("", b"", trace.work)) == "has no blocks of PyTorch's allocator"
