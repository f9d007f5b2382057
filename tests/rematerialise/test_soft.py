"""The engine beside unified memory: a price, a window, and a budget that may be exceeded."""

from __future__ import annotations

import random
from collections import deque

import pytest
from machine import Cell, Machine

from deepum.rematerialise.soft import SoftEngine
from deepum.rematerialise.window import Window


class SoftMachine(Machine):
    is_soft = True

    def __init__(
        self, budget: int, price: float, window: int = 0, *, sampling: bool = True
    ) -> None:
        super().__init__(budget)
        self.engine = self.soft = SoftEngine(
            budget, self, price, window=window, smallest=1, sampling=sampling
        )


def plus(value: int) -> tuple[int]:
    return (value + 1,)


def chain(machine: Machine, costs: list[float], size: int = 1) -> list[Cell]:
    """Cells that are each computed from one source, at these costs."""
    source = machine.source(0, size)
    machine.kept.append(source)
    return [machine.run(plus, [source], (size,), cost)[0] for cost in costs]


def test_what_is_dearer_than_the_price_stays_beyond_the_budget() -> None:
    machine = SoftMachine(3, price=5.0)
    cells = chain(machine, [1.0, 9.0, 2.0, 9.0, 9.0, 9.0])
    evicted = [machine.content(one).is_evicted() for one in cells]
    assert evicted == [True, False, True, False, False, False]
    assert machine.engine.used == 5 > machine.engine.budget
    assert [machine.read(one) for one in cells] == [1] * 6


def test_the_price_is_of_a_byte() -> None:
    cheap, dear = SoftMachine(4, price=2.0), SoftMachine(4, price=2.0)
    large = chain(cheap, [7.0, 7.0, 7.0], size=4)
    small = chain(dear, [7.0, 7.0, 7.0, 7.0], size=1)
    assert any(cheap.content(one).is_evicted() for one in large)
    assert not any(dear.content(one).is_evicted() for one in small)


def test_without_a_price_nothing_leaves() -> None:
    machine = SoftMachine(2, price=0.0)
    cells = chain(machine, [1.0] * 5)
    assert machine.engine.counters.evictions == machine.engine.counters.scored == 0
    machine.soft.set(5.0, 2)
    chain(machine, [1.0])
    assert machine.engine.counters.evictions > 0
    assert [machine.read(one) for one in cells] == [1] * 5


def test_what_was_used_within_the_window_stays() -> None:
    machine = SoftMachine(3, price=5.0, window=4)
    cells = chain(machine, [1.0] * 8)
    # Each run uses the source and what it makes, two bytes; the last one looked before its own.
    assert [machine.content(one).is_evicted() for one in cells] == [True] * 5 + [False] * 3


def test_a_step_draws_what_the_one_before_drew() -> None:
    machine = SoftMachine(1, price=5.0)
    machine.engine.budget = 1 << 20
    cells = chain(machine, [1.0] * 200)

    def drawn() -> list[int]:
        return [id(one) for _ in range(5) for one in machine.engine._evictable.sample()]

    machine.soft.begin_step()
    first = drawn()
    assert drawn() != first
    machine.soft.begin_step()
    assert drawn() == first
    assert len(cells) == 200


def test_shortage_looks_at_a_few_candidates_only_unless_at_all() -> None:
    for sampling, least, most in ((True, 1, 20), (False, 400, 400)):
        machine = SoftMachine(10, price=0.5, sampling=sampling)
        chain(machine, [9.0] * 400)
        counters = machine.engine.counters
        before = counters.scored
        machine.engine.make_room(1)
        assert counters.evictions == 0
        assert least <= counters.scored - before <= most


def test_the_price_is_asked_of_all_that_is_missing_on_the_way() -> None:
    machine = SoftMachine(1 << 20, price=2.5)
    cells = [machine.source(0)]
    for _ in range(3):
        cells += machine.run(plus, [cells[-1]])
    engine, contents = machine.engine, [machine.content(one) for one in cells]
    engine.elapse(9.0)
    assert machine.read(cells[3]) == 3  # just used, so that it is the last to leave
    engine.budget = 0
    engine.make_room(0)
    evicted = [one.is_evicted() for one in contents]
    assert evicted == [False, True, True, False], "the third would take three, and two are missing"


@pytest.mark.parametrize("seed", range(20))
def test_the_window_begins_where_so_much_was_used_since(seed: int) -> None:
    drawn = random.Random(seed)
    size = drawn.randrange(1, 40)
    window = Window(size)
    uses: deque[tuple[int, float]] = deque()
    clock = 0.0
    for _ in range(200):
        clock += drawn.choice((0.0, 1.0, 2.5))
        used = drawn.randrange(12)
        window.use(used, clock)
        uses.append((used, clock))
        times = [
            time
            for time in {time for _, time in uses}
            if sum(used for used, at in uses if at > time) >= size
        ]
        assert window.begin == max(times, default=float("-inf"))


def test_a_window_without_a_size_keeps_nothing() -> None:
    window = Window(0)
    window.use(5, 1.0)
    assert window.begin == float("inf")
