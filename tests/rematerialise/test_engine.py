"""The engine on a machine of integers: what it gives back is what was there, below the budget."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machine import Cell, Machine, failing_budget

from deepum.rematerialise.engine import BudgetError
from deepum.rematerialise.graph import Operation
from deepum.rematerialise.heuristics import HEURISTICS, Heuristic, named

ALL = pytest.mark.parametrize("heuristic", HEURISTICS, ids=lambda one: one.name)


def plus(*values: int) -> Sequence[int]:
    return (sum(values) + 1,)


def split(value: int) -> Sequence[int]:
    return value // 2, value * 3


def chain(machine: Machine, length: int, keep: bool = True) -> list[Cell]:
    """A source and what is computed from it, one after the other."""
    cells = [machine.source(1)]
    for _ in range(length):
        (made,) = machine.run(plus, [cells[-1]])
        cells = [*cells, made] if keep else [cells[0], made]
    return cells


@ALL
def test_a_chain_is_read_below_the_budget(heuristic: Heuristic) -> None:
    machine = Machine(5, heuristic)
    cells = chain(machine, 30)
    assert [machine.read(one) for one in reversed(cells)] == list(range(31, 0, -1))
    assert machine.engine.counters.peak_bytes <= 5
    assert machine.engine.counters.evictions > 26


def test_without_need_nothing_is_evicted_or_computed_again() -> None:
    machine = Machine(31)
    cells = chain(machine, 30)
    assert machine.read(cells[7]) == 8
    assert not machine.freed
    assert machine.runs == 0


def test_a_chain_is_deeper_than_the_recursion_limit() -> None:
    length = 3 * sys.getrecursionlimit()
    machine = Machine(4)
    cells = chain(machine, length, keep=False)
    machine.engine.make_room(3)
    assert machine.content(cells[-1]).is_evicted()
    assert machine.read(cells[-1]) == length + 1
    assert machine.runs == length


def test_a_long_chain_goes_without_recursion() -> None:
    machine = Machine(4)
    cells = chain(machine, 30 * sys.getrecursionlimit(), keep=False)
    last = weakref.ref(machine.content(cells[-1]))
    del cells
    gc.collect()
    machine.check()
    assert last() is None


def test_locked_contents_stay() -> None:
    machine = Machine(4)
    first, second, third, _ = chain(machine, 3)
    engine = machine.engine
    locked = engine.acquire([machine.content(second), machine.content(third)])
    engine.make_room(1)
    assert machine.content(second).is_resident
    assert machine.content(third).is_resident
    with pytest.raises(BudgetError):
        engine.make_room(2)
    engine.free_locks(locked)
    engine.make_room(2)
    assert machine.content(first).is_resident


def test_a_lock_is_held_once_for_each_acquire() -> None:
    machine = Machine(2)
    _, second = chain(machine, 1)
    engine = machine.engine
    locked = [engine.acquire([machine.content(second)]) for _ in range(2)]
    engine.free_locks(locked[0])
    with pytest.raises(BudgetError):
        engine.make_room(1)
    engine.free_locks(locked[1])
    engine.make_room(1)


def test_of_a_failed_acquire_nothing_stays_locked() -> None:
    machine = Machine(3)
    source = machine.source(1)
    (big,) = machine.run(plus, [source], (2,))
    engine = machine.engine
    engine.make_room(1)
    assert machine.content(big).is_evicted()
    engine.grow(1)
    with pytest.raises(BudgetError):
        engine.acquire([machine.content(source), machine.content(big)])
    engine.grow(-1)
    machine.check()
    assert machine.read(big) == 2


def test_of_several_outputs_the_living_ones_come_back() -> None:
    machine = Machine(4)
    source = machine.source(10)
    first, second = machine.run(split, [source], (1, 2))
    machine.engine.make_room(3)
    assert machine.content(first).is_evicted()
    assert machine.read(second) == 30
    assert machine.runs == 1
    assert machine.read(first) == 5  # it came with the other
    assert machine.runs == 1
    machine.engine.make_room(3)
    del first
    assert machine.read(second) == 30
    assert machine.engine.used == 3


def test_what_was_changed_in_place_is_computed_with_its_changes() -> None:
    machine = Machine(4)
    source = machine.source(1)
    (cell,) = machine.run(plus, [source])
    (before,) = machine.run(plus, [cell])
    for _ in range(3):
        machine.change(lambda value, other: (value * 2 + other,), cell, [source])
    machine.engine.make_room(3)
    assert machine.read(cell) == 23
    assert machine.read(before) == 3
    assert machine.engine.counters.peak_bytes <= 4


def test_a_version_that_others_need_is_not_used_up() -> None:
    machine = Machine(5)
    source = machine.source(1)
    (cell,) = machine.run(plus, [source])
    (reader,) = machine.run(plus, [cell])
    machine.change(lambda value: (value * 10,), cell)
    machine.engine.make_room(4)
    (both,) = machine.run(lambda *values: (sum(values),), [cell, reader])
    assert machine.read(both) == 23
    machine.engine.make_room(4)
    assert machine.read(both) == 23


def test_a_source_that_changes_leaves_what_was_computed_of_it() -> None:
    machine = Machine(5)
    source = machine.source(1)
    (first,) = machine.run(plus, [source])
    (second,) = machine.run(plus, [first])
    (third,) = machine.run(plus, [second])
    del second
    machine.engine.make_room(4)
    machine.change(lambda value: (100,), source)
    assert [machine.read(one) for one in (source, first, third)] == [100, 2, 4]
    assert machine.content(first).producer is None
    machine.engine.make_room(2)
    assert machine.content(first).is_resident  # it is a source now
    assert machine.content(third).is_evicted() is False


def test_a_change_for_which_there_is_no_room_changes_nothing() -> None:
    machine = Machine(3)
    source = machine.source(1)
    cells = [machine.run(plus, [source])[0] for _ in range(4)]
    with pytest.raises(BudgetError):
        machine.change(lambda value: (100,), source)
    machine.check()
    assert machine.read(source) == 1
    assert [machine.read(one) for one in cells] == [2, 2, 2, 2]


def test_a_pinned_content_comes_back_and_stays() -> None:
    machine = Machine(3)
    source = machine.source(1)
    (cell,) = machine.run(plus, [source])
    (after,) = machine.run(plus, [cell])
    machine.engine.make_room(2)
    machine.engine.pin(machine.content(cell), "a reason")
    machine.engine.settle()
    assert cell.value == 2
    assert machine.content(cell).why == "a reason"
    with pytest.raises(BudgetError):
        machine.engine.make_room(2)
    machine.engine.make_room(1)
    runs = machine.runs
    assert machine.read(after) == 3
    assert machine.runs == runs + 1  # from the pinned one


def test_what_was_computed_on_the_way_goes() -> None:
    machine = Machine(6)
    cells = chain(machine, 5, keep=False)
    machine.engine.make_room(5)
    assert machine.read(cells[-1]) == 6
    assert machine.engine.used == 2
    assert len(machine.freed) >= 4


def readers_of_one(budget: int) -> tuple[Machine, list[Cell]]:
    """A source, and four cells computed over another each from a large one that was let go; all are
    evicted.
    """
    machine = Machine(budget)
    (large,) = machine.run(plus, [machine.source(1)], (8,))
    cells = []
    for _ in range(4):
        (between,) = machine.run(plus, [large])
        cells += machine.run(plus, [between])
    del large, between
    machine.engine.make_room(budget - 1)
    return machine, cells


def test_what_others_are_computed_from_stays_until_the_last_was() -> None:
    machine, cells = readers_of_one(20)
    runs = machine.runs
    used = []
    for one in cells:
        assert machine.read(one) == 4
        used.append(machine.engine.used)
    assert machine.runs == runs + 1 + 2 * 4  # the large one once
    assert used == [1 + 8 + 1, 1 + 8 + 2, 1 + 8 + 3, 1 + 4]


def test_what_others_are_computed_from_goes_where_memory_is_short() -> None:
    machine, cells = readers_of_one(20)
    assert machine.read(cells[0]) == 4
    machine.engine.make_room(18)
    assert machine.engine.used <= 2
    assert [machine.read(one) for one in cells] == [4, 4, 4, 4]
    assert machine.engine.counters.peak_bytes <= 20


def test_what_was_let_go_is_computed_with_its_readers() -> None:
    machine = Machine(3)
    source = machine.source(1)
    (middle,) = machine.run(plus, [source])
    (last,) = machine.run(plus, [middle])
    machine.engine.make_room(2)
    lost = weakref.ref(machine.content(middle))
    del middle
    assert machine.read(last) == 3
    assert lost() is not None
    del last
    machine.check()
    assert lost() is None


def test_a_source_that_operations_alone_keep_is_given_up_for_room() -> None:
    machine = Machine(6, smallest=2)
    source = machine.source(1, 4)
    (small,) = machine.run(plus, [source])
    machine.let_go(source)
    del source
    machine.check()
    assert machine.engine.used == 5
    (large,) = machine.run(lambda: (7,), [], (5,))
    assert machine.engine.counters.banished == 1
    assert machine.content(small).producer is None
    assert machine.read(small) == 2
    assert machine.read(large) == 7


def test_a_shortage_tells_what_is_in_use_and_missing() -> None:
    machine = Machine(10)
    source = machine.source(1, 2)
    (cell,) = machine.run(plus, [source], (3,))
    locked = machine.engine.acquire([machine.content(source), machine.content(cell)])
    with pytest.raises(BudgetError) as caught:
        machine.engine.make_room(9)
    machine.engine.free_locks(locked)
    assert caught.value.missing == 4
    assert caught.value.in_use == 3
    assert "4 bytes" in str(caught.value)


def test_small_contents_are_not_evicted() -> None:
    machine = Machine(10, smallest=3)
    source = machine.source(1)
    (small,), (large,) = machine.run(plus, [source], (2,)), machine.run(plus, [source], (3,))
    machine.engine.make_room(5)
    assert machine.content(large).is_evicted()
    assert machine.content(small).is_resident
    with pytest.raises(BudgetError):
        machine.engine.make_room(8)


def test_counters() -> None:
    machine = Machine(4)
    source = machine.source(1)
    (cell,) = machine.run(plus, [source], (2,), cost=7.0)
    machine.engine.make_room(3)
    assert machine.read(cell) == 2
    counters = machine.engine.counters
    assert (counters.evictions, counters.evicted_bytes) == (1, 2)
    assert (counters.recomputations, counters.recomputed_ns) == (1, 7.0)
    assert counters.peak_bytes == 3
    assert machine.engine.clock == 14.0
    assert machine.content(cell).recomputed == 1


STEP = st.tuples(
    st.sampled_from(["source", "run", "run", "run", "split", "change", "read", "drop", "pin"]),
    st.integers(0, 1000),
    st.integers(0, 1000),
    st.integers(1, 4),
)


@settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(
    steps=st.lists(STEP, min_size=10, max_size=60),
    budget=st.integers(6, 24),
    name=st.sampled_from([one.name for one in HEURISTICS]),
    sampling=st.booleans(),
)
def test_random_programs_read_what_they_wrote(
    steps: list[tuple[str, int, int, int]], budget: int, name: str, sampling: bool
) -> None:
    machine = Machine(budget, named(name), sampling=sampling)
    cells: list[Cell] = []
    expected: list[int] = []

    def made(new: Sequence[Cell], values: Sequence[int]) -> None:
        cells.extend(new)
        expected.extend(values)

    def step(kind: str, one: int, two: int, size: int) -> None:
        if kind == "source" or not cells:
            made([machine.source(one, size)], [one])
            return
        first, second = one % len(cells), two % len(cells)
        if kind == "run":
            inputs = [cells[first], cells[second]]
            values = plus(expected[first], expected[second])
            made(machine.run(plus, inputs, (size,), cost=float(two + 1)), values)
        elif kind == "split":
            made(machine.run(split, [cells[first]], (size, 1)), split(expected[first]))
        elif kind == "change":
            others = [] if first == second else [second]
            machine.change(plus, cells[first], [cells[place] for place in others])
            (expected[first],) = plus(expected[first], *[expected[place] for place in others])
        elif kind == "read":
            assert machine.read(cells[first]) == expected[first]
        elif kind == "pin":
            machine.engine.pin(machine.content(cells[first]), "pinned")
            machine.engine.settle()
        else:
            machine.let_go(cells[first])
            del cells[first], expected[first]

    for kind, one, two, size in steps:
        failing_budget(machine, lambda: step(kind, one, two, size))  # noqa: B023
    machine.check()
    machine.engine.budget = 1 << 30
    assert [machine.read(one) for one in cells] == expected


def test_an_operation_keeps_what_it_reads_and_no_more() -> None:
    machine = Machine(8)
    cells = chain(machine, 3)
    operations = [weakref.ref(machine.content(one).producer) for one in cells[1:]]
    del cells[1:3]
    assert all(one() is not None for one in operations)
    assert isinstance(operations[0](), Operation)
    del cells[1:]
    machine.check()
    assert [one() for one in operations] == [None, None, None]
