"""Heuristics beside numbers computed by hand, and what is looked at for them."""

from __future__ import annotations

import math

import pytest
from machine import Cell, Machine

from deepum.errors import UsageError
from deepum.rematerialise import groups
from deepum.rematerialise.evictable import Evictable
from deepum.rematerialise.graph import Content
from deepum.rematerialise.heuristics import (
    BY_NAME,
    Dtr,
    DtrEq,
    Heuristic,
    Local,
    MegEngine,
    Path,
    named,
)


def plus(*values: int) -> tuple[int]:
    return (sum(values) + 1,)


def evict(machine: Machine, *cells: Cell) -> None:
    """These leave, in order."""
    for one in cells:
        machine.engine._evict(machine.content(one))


def line(machine: Machine, costs: list[float]) -> list[Cell]:
    """A source, and a chain of operations that cost so much."""
    cells = [machine.source(1)]
    for cost in costs:
        cells += machine.run(plus, [cells[-1]], cost=cost)
    return cells


def score(machine: Machine, cell: Cell, staleness: float = 0.0, beside: int = 0) -> float:
    return machine.engine.heuristic.score(machine.content(cell), staleness, beside)


@pytest.mark.parametrize("heuristic", [Dtr(), DtrEq()], ids=lambda one: one.name)
def test_evicted_neighbours_count(heuristic: Heuristic) -> None:
    machine = Machine(100, heuristic)
    cells = line(machine, [1.0, 2.0, 4.0, 8.0, 16.0])
    assert [score(machine, one) for one in cells[1:]] == [1.0, 2.0, 4.0, 8.0, 16.0]
    evict(machine, cells[2], cells[3])
    assert score(machine, cells[1]) == 1 + 2 + 4
    assert score(machine, cells[4]) == 8 + 2 + 4
    assert score(machine, cells[5]) == 16  # a resident one lies between
    evict(machine, cells[5])
    assert score(machine, cells[4]) == 8 + 2 + 4 + 16
    assert score(machine, cells[4], staleness=3.0) == (8 + 2 + 4 + 16) / 4


def fork(heuristic: Heuristic) -> tuple[Machine, Cell, Cell]:
    """What two others are computed from came back, and those did not: that one, and what is
    computed from the first of them.
    """
    machine = Machine(100, heuristic)
    (middle,) = machine.run(plus, [machine.source(1)], cost=4.0)
    (left,) = machine.run(plus, [middle], cost=2.0)
    (right,) = machine.run(plus, [middle], cost=8.0)
    (behind,) = machine.run(plus, [left], cost=1.0)
    evict(machine, left, middle, right)
    assert score(machine, behind) == 1 + 2 + 4 + (8 if heuristic.uses_groups else 0)
    machine.read(middle)
    machine.kept = [left, right]
    return machine, middle, behind


def test_exact_neighbours_of_a_content_that_comes_back_are_split() -> None:
    machine, middle, behind = fork(Dtr())
    assert score(machine, middle) == 4 + 2 + 8
    assert score(machine, behind) == 1 + 2


def test_classes_of_a_content_that_comes_back_stay_joined() -> None:
    machine, middle, behind = fork(DtrEq())
    assert score(machine, middle) == 4 + 2 + 8
    assert score(machine, behind) == 1 + 2 + 8  # the exact search says 1 + 2
    evict(machine, middle)
    assert score(machine, behind) == 1 + 2 + 8 + 4


def test_one_class_on_both_sides_counts_once() -> None:
    machine = Machine(100, DtrEq())
    first = machine.source(1)
    (left,) = machine.run(plus, [first], cost=2.0)
    (right,) = machine.run(plus, [left], cost=4.0)
    (both,) = machine.run(plus, [left, right], cost=8.0)
    evict(machine, left, right)
    assert score(machine, both) == 8 + 6
    assert groups.exact_cost_of_neighbours(machine.content(both)) == 6


def test_a_deep_class_is_found_by_its_root() -> None:
    machine = Machine(10_000, DtrEq())
    cells = line(machine, [1.0] * 2000)
    evict(machine, *cells[1:1000])
    assert score(machine, cells[1000]) == 1000
    evict(machine, *reversed(cells[1001:]))
    assert score(machine, cells[1000]) == 2000


@pytest.mark.parametrize("name", BY_NAME)
def test_victims_of_hand_made_contents(name: str) -> None:
    """Four contents; costs, sizes and ages are such that each heuristic has another order."""
    machine = Machine(100, named(name), sampling=False)
    source = machine.source(1)
    (base,) = machine.run(plus, [source], (4,), cost=100.0)
    (old,) = machine.run(plus, [base], (2,), cost=300.0)
    (large,) = machine.run(plus, [source], (10,), cost=900.0)
    (cheap,) = machine.run(plus, [source], (3,), cost=10.0)
    machine.engine.elapse(100.0)
    cells = {"base": base, "old": old, "large": large, "cheap": cheap}
    names = {machine.content(one).handle.number: key for key, one in cells.items()}
    machine.engine.make_room(100 - 1)
    order = [names[number] for number in machine.freed]
    # Ages when they leave: base 1310, old 1010, large 110, cheap 100.
    assert order == ORDERS[name]


ORDERS = {
    # base and large as below; with base gone, old is (300+100)/(2*1011) = .198.
    "path": ["base", "cheap", "old", "large"],
    # base 100/(4*1311) = .019, old 300/(2*1011) = .148, large 900/(10*111) = .81,
    # cheap 10/(3*101) = .033; with base gone, old is (300+100)/(2*1011) = .198.
    "dtr": ["base", "cheap", "old", "large"],
    "dtr-eq": ["base", "cheap", "old", "large"],
    "local": ["base", "cheap", "old", "large"],
    # Costs and ages are a microsecond more: base 1100/(4*2310) = .12, large 1900/(10*1110) = .17,
    # cheap 1010/(3*1100) = .31, old with base gone (1300+100)/(2*2010) = .35.
    "megengine": ["base", "large", "cheap", "old"],
    "lru": ["base", "old", "large", "cheap"],
    "size": ["large", "base", "cheap", "old"],
}


def test_what_is_missing_before_a_content_counts_for_its_path() -> None:
    machine = Machine(100, Path())
    cells = line(machine, [1.0, 2.0, 4.0, 8.0, 16.0])
    evict(machine, cells[2], cells[3])
    assert score(machine, cells[1]) == 1, "what is computed from it does not"
    assert score(machine, cells[4]) == 8 + 2 + 4
    assert score(machine, cells[4], staleness=3.0) == (8 + 2 + 4) / 4
    assert score(machine, cells[5]) == 16  # a resident one lies between
    (both,) = machine.run(plus, [cells[3], cells[2]], (2,), cost=32.0)
    evict(machine, cells[3], cells[2], cells[1])
    assert score(machine, both) == (32 + 4 + 2 + 1) / 2, "each once"


def test_a_path_is_searched_so_far() -> None:
    machine = Machine(1000, Path())
    cells = line(machine, [1.0] * 100)
    evict(machine, *cells[1:-1])
    assert score(machine, cells[-1]) == 64


def test_the_formula_of_megengine() -> None:
    mib = 1 << 20
    content = Content(3 * mib)
    content.recomputed = 3
    # No operation computes it: its cost is 0, to which a microsecond is added, as to its age.
    expected = 1e-3 * 1.0001**3 / ((3 + 1) * (4 + 1e-3))
    assert math.isclose(MegEngine().score(content, 4e6, mib), expected, rel_tol=1e-12)
    machine = Machine(1 << 30, MegEngine())
    source = machine.source(1)
    (left,) = machine.run(plus, [source], (mib,), cost=2e6)
    (cell,) = machine.run(plus, [left], (3 * mib,), cost=5e6)
    evict(machine, left)
    machine.content(cell).recomputed = 2
    found = MegEngine(0.5, 2.0, 1.5, 1.1).score(machine.content(cell), 7e6, mib)
    expected = (2 + 5 + 1e-3) ** 0.5 * 1.1**2 / ((3 + 1) ** 1.5 * (7 + 1e-3) ** 2)
    assert math.isclose(found, expected, rel_tol=1e-12)


def test_free_memory_beside_a_content_counts_for_megengine() -> None:
    machine = Machine(1 << 30, named("megengine"), sampling=False)
    source = machine.source(1)
    size = 1 << 20
    (first,) = machine.run(plus, [source], (size,), cost=1e6)
    (second,) = machine.run(plus, [source], (size,), cost=1e6)
    machine.engine.elapse(1e9)
    machine.beside = {id(machine.content(second)): size}
    machine.engine.make_room((1 << 30) - 2 * size)
    assert machine.content(first).is_resident
    assert machine.content(second).is_evicted()


def test_what_is_stale_is_cheap() -> None:
    content = Content(2)
    for heuristic in (Dtr(), DtrEq(), Local()):
        assert heuristic.score(content, 5.0, 0) == 0.0
    machine = Machine(10, Local())
    (cell,) = machine.run(plus, [machine.source(1)], (2,), cost=12.0)
    assert score(machine, cell, staleness=2.0) == 12 / (2 * 3)


def test_an_unknown_heuristic_is_told() -> None:
    with pytest.raises(
        UsageError, match="choose from path, dtr-eq, dtr, local, megengine, lru, size"
    ):
        named("mru")


def many(sizes: list[int], **options: bool) -> tuple[Machine, list[Cell]]:
    machine = Machine(1 << 40, named("lru"), **options)
    source = machine.source(1)
    return machine, [machine.run(plus, [source], (size,))[0] for size in sizes]


@pytest.mark.parametrize(("count", "drawn"), [(33, 6), (36, 6), (37, 7), (100, 10)])
def test_the_square_root_of_all_is_scored(count: int, drawn: int) -> None:
    machine, _cells = many([1] * count)
    seen = set()
    for _ in range(50):
        before = machine.engine.counters.scored
        assert machine.engine._victim() is not None
        seen.add(machine.engine.counters.scored - before)
    assert max(seen) == drawn  # with replacement: it may be fewer
    assert min(seen) >= 1


def test_few_are_all_scored_and_many_without_sampling() -> None:
    for count, options in ((32, {}), (100, {"sampling": False})):
        machine, cells = many([1] * count, **options)
        assert machine.engine._victim() is machine.content(cells[0])
        assert machine.engine.counters.scored == count


def test_what_is_below_a_hundredth_of_the_mean_size_is_not_scored() -> None:
    sizes = [1] * 50 + [1000] * 50  # the mean is 500.5
    machine, cells = many(sizes)
    for _ in range(30):
        victim = machine.engine._victim()
        assert victim is not None
        assert victim.bytes == 1000
    machine, cells = many([1] * 50 + [150] * 50)  # the mean is 75.5
    victims = [machine.engine._victim() for _ in range(30)]
    assert {one.bytes for one in victims if one is not None} == {1}
    machine, cells = many(sizes, sampling=False)
    assert machine.engine._victim() is machine.content(cells[0])


def test_small_ones_leave_when_nothing_else_is_left() -> None:
    machine, cells = many([1] * 50 + [1000] * 50)
    machine.engine.make_room((1 << 40) - 1)
    assert all(machine.content(one).is_evicted() for one in cells)


def test_a_set_with_draws() -> None:
    contents = [Content(size) for size in range(1, 50)]
    found = Evictable(seed=1)
    for one in contents:
        found.add(one)
        found.add(one)
    assert (len(found), found.bytes) == (49, sum(range(1, 50)))
    for one in contents[::2]:
        found.discard(one)
        found.discard(one)
    assert {one.bytes for one in found.all()} == {one.bytes for one in contents[1::2]}
    assert found.bytes == sum(one.bytes for one in contents[1::2])
    drawn = {one.bytes for _ in range(200) for one in found.sample()}
    assert drawn == {one.bytes for one in contents[1::2]}
    assert len(found.sample()) <= 5
