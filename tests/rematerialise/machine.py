"""A machine without PyTorch: cells of integers under an engine, and programs on them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from deepum.rematerialise.engine import BudgetError, Engine
from deepum.rematerialise.graph import Content, Operation
from deepum.rematerialise.heuristics import Heuristic, LeastRecentlyUsed

_MANY = 500  # contents, beyond which they are not all looked at after each step

Function = Callable[..., Sequence[int]]


class Cell:
    """Memory that the program holds; no number in it: it was evicted."""

    def __init__(self, value: int | None, content: Content | None) -> None:
        self.value = value
        self.content = content


class Place:
    """Where a content is: in a cell of the program's, or in one of the machine's own."""

    def __init__(self, number: int, home: Cell | None) -> None:
        self.number = number
        self.home = None if home is None else weakref.ref(home)
        self.own: Cell | None = None

    def cell(self) -> Cell | None:
        if self.own is not None:
            return self.own
        return self.home() if self.home is not None else None


class Machine:
    """A backend, and the program's side: each step checks that the engine counts what there is.

    freed: numbers of the places whose memory was taken, in order. is_soft: more than the budget may
    be in use.
    """

    is_soft = False

    def __init__(self, budget: int, heuristic: Heuristic | None = None, **options: Any) -> None:
        self.freed: list[int] = []
        self.runs = 0
        self.kept: list[Cell] = []  # by a test, for as long as the machine is there
        self._places = -1
        self.beside: dict[int, int] = {}
        self._living: weakref.WeakSet[Content] = weakref.WeakSet()
        self._gone: list[Content] = []
        self._watched: dict[int, Any] = {}
        self.engine = Engine(budget, self, heuristic or LeastRecentlyUsed(), **options)

    # The backend.

    def evict(self, content: Content) -> None:
        self.freed.append(content.handle.number)
        if content.handle.own is not None:
            content.handle.own = None
        elif (cell := content.handle.cell()) is not None:
            cell.value = None

    def compute(self, operation: Operation, wanted: Sequence[Content]) -> float:
        assert self.is_soft or (
            self.engine.used + sum(one.bytes for one in wanted) <= self.engine.budget
        )
        self.runs += 1
        cells = [one.handle.cell() for one in operation.inputs]
        results = operation.payload(*[self._number(cell) for cell in cells])
        for reference, value in zip(operation.outputs, results, strict=True):
            content = reference()
            if content is not None and any(one is content for one in wanted):
                self._put(content, value)
        old = operation.overwrites
        if old is not None and old.locks == 1:
            old.handle.own = None
        return operation.cost

    def hold(self, content: Content) -> Any:
        return content.handle.cell()

    def keep(self, operation: Operation, content: Content) -> None:
        operation.held.append(content.handle.cell())

    def free_beside(self, content: Content) -> int:
        return self.beside.get(id(content), 0)

    def abandoned(self) -> Iterable[Content]:
        found = [
            one
            for one in self._living
            if one.producer is None and one.readers and one.why == "abandoned"
        ]
        return sorted(found, key=lambda one: -one.bytes)

    @staticmethod
    def _number(cell: Cell | None) -> int:
        assert cell is not None
        assert cell.value is not None
        return cell.value

    @staticmethod
    def _put(content: Content, value: int) -> None:
        home = content.handle.home and content.handle.home()
        if home is None:
            content.handle.own = Cell(value, None)
        else:
            home.value = value

    # The program.

    def source(self, value: int, size: int = 1) -> Cell:
        """A cell that nothing computes."""
        self._forget()
        self.engine.make_room(size)
        return self._add(value, size)

    def run(
        self,
        function: Function,
        inputs: Sequence[Cell],
        sizes: Sequence[int] = (1,),
        cost: float = 1.0,
    ) -> list[Cell]:
        """New cells with what a function makes of cells."""
        self._forget()
        contents = list(dict.fromkeys(self.content(one) for one in inputs))
        places = [contents.index(self.content(one)) for one in inputs]
        locked = self.engine.acquire(contents)
        try:
            self.engine.make_room(sum(sizes))
            values = function(*[self._number(one) for one in inputs])
            made = [self._cell(value, size) for value, size in zip(values, sizes, strict=True)]
            operation = Operation(
                tuple(contents),
                tuple(self.content(one) for one in made),
                cost,
                lambda *given: function(*[given[place] for place in places]),
            )
            operation.held = [one for one in inputs if self.content(one).producer is None]
            self.engine.elapse(cost)
            for one in made:
                self.engine.add(self.content(one))
        finally:
            self.engine.free_locks(locked)
            self.engine.settle()
        self.check()
        return made

    def change(
        self, function: Function, cell: Cell, others: Sequence[Cell] = (), cost: float = 1.0
    ) -> None:
        """A function of the cell, and of others, is written to the cell."""
        self._forget()
        old = self.content(cell)
        contents = list(dict.fromkeys(self.content(one) for one in (cell, *others)))
        locked = self.engine.acquire(contents)
        try:
            if old.producer is None and old.readers:
                self.engine.overwrite(old)
            given = [cell, *others]
            places = [contents.index(self.content(one)) for one in given]
            (cell.value,) = function(*[self._number(one) for one in given])
            new = Content(old.bytes, self._place(cell))
            if old.producer is not None:
                operation = Operation(
                    tuple(contents),
                    (new,),
                    cost,
                    lambda *values: function(*[values[place] for place in places]),
                    overwrites=old,
                    room=2 * old.bytes,
                )
                operation.held = [one for one in others if self.content(one).producer is None]
            self.engine.release(old)
            old.handle.home = None
            self._own(cell, new)
            self.engine.add(new)
        finally:
            self.engine.free_locks(locked)
            self.engine.settle()
        self.check()

    def read(self, cell: Cell) -> int:
        """The number in a cell."""
        self._forget()
        locked = self.engine.acquire([self.content(cell)])
        value = self._number(cell)
        self.engine.free_locks(locked)
        self.engine.settle()
        self.check()
        return value

    def let_go(self, cell: Cell) -> None:
        """The program drops a cell: its last reference, but for this call's. A source that
        operations keep stays, and is abandoned.
        """
        content = self.content(cell)
        if content.producer is None:
            content.why = "abandoned"

    def check(self) -> None:
        """What is resident has memory, what is not has none, and the sum is what is used."""
        self._forget()
        if len(self._living) > _MANY:
            return
        used = 0
        for one in list(self._living):
            cell = one.handle.cell()
            has_memory = cell is not None and cell.value is not None
            assert has_memory == one.is_resident
            assert one.locks == 0
            used += one.bytes if has_memory else 0
        assert self.engine.used == used
        assert self.is_soft or self.engine.counters.peak_bytes <= self.engine.budget

    @staticmethod
    def content(cell: Cell) -> Content:
        assert cell.content is not None
        return cell.content

    def _place(self, home: Cell) -> Place:
        self._places += 1
        return Place(self._places, home)

    def _cell(self, value: int, size: int) -> Cell:
        cell = Cell(value, None)
        self._own(cell, Content(size, self._place(cell)))
        return cell

    def _add(self, value: int, size: int) -> Cell:
        cell = self._cell(value, size)
        self.engine.add(self.content(cell))
        return cell

    def _own(self, cell: Cell, content: Content) -> None:
        if cell.content is None:
            key = id(cell)
            self._watched[key] = weakref.ref(cell, lambda _: self._died(key))
        cell.content = content
        self._living.add(content)
        self._watched[-id(cell)] = content

    def _died(self, key: int) -> None:
        self._watched.pop(key)
        self._gone.append(self._watched.pop(-key))

    def _forget(self) -> None:
        while self._gone:
            content = self._gone.pop()
            self.engine.release(content)
            content.handle.own = content.handle.home = None
            del content  # what dies with it is to be seen in this loop


def failing_budget(machine: Machine, action: Callable[[], Any]) -> bool:
    """Whether an action met a budget that is too small; the engine counts right either way."""
    try:
        action()
    except BudgetError:
        machine.check()
        return True
    return False
