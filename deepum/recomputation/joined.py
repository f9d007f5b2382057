"""Rematerialisation beside moving: what is cheap to compute again for its size is evicted, and the
rest is left to unified memory. How dear that may be, and how much is handed out before anything
leaves, is found by trials while the program runs (deepum.rematerialise.choice).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from deepum.recomputation.backend import TraceBackend
from deepum.recomputation.contents import HandOut, Item
from deepum.recomputation.following import Following
from deepum.recomputation.tape import Tape
from deepum.rematerialise.choice import Choice, Step, most_steps
from deepum.rematerialise.residency import Counters
from deepum.rematerialise.soft import WINDOW, SoftEngine
from deepum.rematerialise.trials import Trial

_MEASURED = 2  # steps of a trial: what is recorded is a step over and over
MOST_STEPS = most_steps(_MEASURED)  # until a choice is made


class Joined:
    """One program. `memory_bytes`: of the card; `link_ns`: of a byte on the link, one way; `ended`:
    when the GPU was through with a step, ns, NaN while it is not; `others`: slots of memory that is
    not PyTorch's.
    """

    def __init__(
        self,
        memory_bytes: int,
        link_ns: float,
        ended: Callable[[int], float],
        others: Iterable[int] = (),
    ) -> None:
        self._tape = Tape(set(others))
        backend = TraceBackend(self._tape)
        window = int(memory_bytes * WINDOW)
        self._engine = SoftEngine(memory_bytes, backend, window=window, sampling=False)
        self._following = Following(self._engine, backend, self._tape, self)
        self._choice = Choice(memory_bytes, lambda: link_ns, _MEASURED)
        self._ended = ended
        self._pending: deque[Step] = deque()  # whose times are not known
        self._before = 0.0  # when the GPU was through with the one before those
        self._work = 0  # bytes that the program asked for, in this step
        self._is_changed = False  # the setting, with the latest step

    @property
    def trials(self) -> list[Trial]:
        """Those so far."""
        return self._choice.trials

    @property
    def counters(self) -> Counters:
        """What was done."""
        return self._engine.counters

    def run(self, items: Iterable[Item]) -> Iterator[tuple[bytes, bytes]]:
        """As `Following.run`."""
        yield from self._following.run(self._counting(items))

    def _counting(self, items: Iterable[Item]) -> Iterator[Item]:
        for item in items:
            if isinstance(item, HandOut):
                self._work += item.storage.bytes
            yield item

    def begin(self, number: int) -> None:
        """The step before is over, and may be the last of a trial."""
        if number == 0:
            return
        step = Step(self._work, self._engine.counters.peak_bytes)
        self._work = 0
        self._pending.append(step)
        self._collect(number)
        was_changed, self._is_changed = self._is_changed, self._choice.end(step)
        if self._is_changed or was_changed:
            # Of what lay elsewhere under another setting; a step later again, since gradients live
            # on from step to step.
            self._tape.empty_cache()
        self._engine.set(self._choice.price, self._choice.budget)

    def end(self, number: int) -> None:
        """The program waits for the GPU where a step's time has to be known."""
        if self._choice.awaited is not None:
            self._tape.synchronise()

    def _collect(self, number: int) -> None:
        """Times that are known by now, of so many steps."""
        while self._pending:
            ended = self._ended(number - len(self._pending))
            if math.isnan(ended):
                return
            self._pending.popleft().ns = ended - self._before
            self._before = ended
