"""What is read on the way to what is computed again stays, as long as anything else may leave."""

from __future__ import annotations

from random import Random

import pytest
from machine import Cell, Machine

from deepum.rematerialise.graph import Content, Operation
from deepum.rematerialise.heuristics import Local
from deepum.rematerialise.way import Way


def plus(*values: int) -> tuple[int]:
    return (sum(values) + 1,)


def diamond(budget: int) -> tuple[Machine, Cell, Cell]:
    """`last` is computed from `large`, over a chain and directly, in that order; both are evicted,
    and so is the chain. `other` is dear and resident.
    """
    machine = Machine(budget, Local(), sampling=False)
    source = machine.source(1)
    (large,) = machine.run(plus, [source], (8,))
    (one,) = machine.run(plus, [large], (4,))
    (two,) = machine.run(plus, [one], (4,))
    (last,) = machine.run(plus, [two, large], (1,))
    del large, one, two
    machine.engine.make_room(budget - 1)
    (other,) = machine.run(plus, [source], (4,), cost=1000.0)
    assert machine.content(last).is_evicted()
    assert machine.content(other).is_resident
    return machine, last, other


def test_what_is_read_later_on_the_way_leaves_last() -> None:
    machine, last, other = diamond(20)
    runs = machine.runs
    assert machine.read(last) == 4 + 2 + 1
    assert machine.runs == runs + 4, "each was computed once"
    assert machine.content(other).is_evicted()


def test_where_nothing_else_may_leave_it_does() -> None:
    """Two of three large contents have room at a time, and all are on the way."""
    machine = Machine(18, sampling=False)
    source = machine.source(1)
    (large,) = machine.run(plus, [source], (8,))
    (first,) = machine.run(plus, [large], (8,))
    (second,) = machine.run(plus, [first], (8,))
    (third,) = machine.run(plus, [second], (1,))
    (last,) = machine.run(plus, [third, large], (1,))
    del large, first, second, third
    machine.engine.make_room(16)
    runs = machine.runs
    assert machine.read(last) == 2 + 1 + 1 + 1 + 2 + 1
    assert machine.runs == runs + 6, "the large one twice"


def ahead(front: list[Operation]) -> set[Content]:
    """By search: what is read by operations that are to run, and by those of what is missing."""
    met, read = set(front), set()
    while front:
        for one in front.pop().inputs:
            read.add(one)
            if not one.is_resident and one.producer is not None and one.producer not in met:
                met.add(one.producer)
                front.append(one.producer)
    return read


@pytest.mark.parametrize("seed", range(20))
def test_it_is_what_a_search_finds(seed: int) -> None:
    """A path runs from its sources on; any content that may be evicted is, now and then."""
    random = Random(seed)
    contents = [Content(1) for _ in range(3)]
    for _ in range(40):
        inputs = random.sample(contents[-8:], random.randint(1, 3))
        made = Content(1)
        Operation(tuple(inputs), (made,), 1.0)
        made.is_resident = random.random() < 0.3
        contents.append(made)
    target = contents[-1]
    target.is_resident = False
    assert target.producer is not None
    way = Way()
    way.add(target.producer)
    while not target.is_resident:
        read = ahead([target.producer])
        assert [one in way for one in contents] == [one in read for one in contents]
        ready = [
            (one, one.producer)
            for one in contents
            if one.is_evicted() and one.producer and (one is target or one in way)
        ]
        computed, operation = random.choice(
            [one for one in ready if all(read.is_resident for read in one[1].inputs)]
        )
        computed.is_resident = True
        way.remove(operation)
        if computed is not target and random.random() < 0.3:
            lost = random.choice([one for one in contents if one.producer and one is not target])
            lost.is_resident = False
            way.lose(lost)
    assert not way
    assert not any(one in way for one in contents)
