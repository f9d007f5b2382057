"""What the model says a training takes: its recorded launches, on a machine with the measured
figures.

How long kernels take on a card no event log tells. Their times are made from what they touch
(acceptance.launches), and then longer or shorter by one factor a model, such that with memory for
all a step takes as long as plain PyTorch's did. So the plain step is given, not predicted;
everything that memory adds to it is predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from deepum._core import ffi, lib

from acceptance.launches import work_of
from deepum.core import CoreSettings, EventLog, events
from deepum.machines import Named
from deepum.simulate.mode import LOCK_STEP
from deepum.simulate.policies import BY_NAME
from deepum.simulate.replay import Outcome, replay
from deepum.trace import Trace

_UNLIMITED_BYTES = 1 << 44
_CLOSE = 2e-3  # of the plain step: how near the factor has to bring it
_TRIES = 24
_LEAST, _MOST = 2.0**-12, 2.0**12  # factors
_RATES = ("memory_gbps", "fp32_gflops", "tensor_gflops")
_OF_CAPACITY = (int(lib.DEEPUM_EVENT_DEVICE), int(lib.DEEPUM_EVENT_CAPACITY))


def later_ms(steps_ms: Sequence[float]) -> float:
    """The mean of the second half, but for the last: what follows it in the program is not another
    step. ms.
    """
    counted = steps_ms[len(steps_ms) // 2 : -1] or steps_ms[-1:]
    return sum(counted) / len(counted)


@dataclass(frozen=True)
class Predicted:
    """ms a step; bytes over the whole run; the most managed memory on the card at a time, bytes."""

    step_ms: float
    bytes_evicted: int
    bytes_h2d: int
    bytes_d2h: int
    peak_resident_bytes: int


class Training:
    """A model's launches on a machine. `recorded_budget`: bytes, of the run that the log is of;
    `steps`: that it made. What it is asked raises ValueError where the log cannot be used.
    """

    def __init__(
        self, name: str, log: EventLog, recorded_budget: int, steps: int, machine: Named
    ) -> None:
        self._trace = Trace(name, log.records, work_of(events(log.records)))
        self._steps = steps
        self._recorded_budget = recorded_budget
        self._machine = machine
        self.factor = 1.0

    def unlimited_ms(self, factor: float) -> float:
        """A step where memory is enough for all. `factor`: that kernels take longer by."""
        on = self._native(factor)
        settings = BY_NAME["unlimited"].settings(int(on.launch_queue))
        return self._step_ms(replay(self._trace, on, settings, _UNLIMITED_BYTES, mode=LOCK_STEP))

    def fit(self, plain_ms: float) -> None:
        """Finds the factor with which a step takes that long. Raises ValueError where none does:
        launches alone take longer.
        """
        low, high = _LEAST, 1.0
        if self.unlimited_ms(low) > plain_ms * (1 + _CLOSE):
            raise ValueError(
                f"the launches alone take longer than the {plain_ms:.3g} ms of a plain step"
            )
        while self.unlimited_ms(high) < plain_ms and high < _MOST:
            low, high = high, 4 * high
        for _ in range(_TRIES):
            self.factor = (low * high) ** 0.5
            ms = self.unlimited_ms(self.factor)
            if abs(ms / plain_ms - 1) <= _CLOSE:
                return
            low, high = (self.factor, high) if ms < plain_ms else (low, self.factor)
        raise ValueError(f"no length of the kernels makes a step of {plain_ms:.3g} ms")

    def under(self, settings: dict[str, int], budget: int, without_prefetch: bool) -> Predicted:
        """Under deepum with these settings of the core (as an event log's header has them) and a
        budget in bytes as a soft limit, that deepum's own evictions keep: the card has room for
        more. Raises ValueError for settings that cannot be used.
        """
        on = self._native(self.factor)
        try:
            core = CoreSettings.default(**settings)
        except TypeError:
            raise ValueError(
                "the settings are not those of this version; run scripts/gpu_acceptance anew"
            ) from None
        trace = Trace(
            self._trace.name, self._with_budget(budget, int(on.memory_bytes)), self._trace.work
        )
        # As it measures.
        outcome = replay(
            trace, on, core, int(on.memory_bytes), without_prefetch=without_prefetch, mode=LOCK_STEP
        )
        counted = (
            int(outcome.counters[name])
            for name in ("bytes_h2d", "bytes_d2h", "peak_resident_bytes")
        )
        return Predicted(self._step_ms(outcome), outcome.core.bytes_evicted, *counted)

    def _step_ms(self, outcome: Outcome) -> float:
        """Steps are counted from the last on, for what comes before the first step is its own."""
        waited: dict[int, float] = {}
        for mark in outcome.marks:
            waited.setdefault(mark.launches, mark.ns / 1e6)
        ends = step_ends(list(waited))
        times = [waited[end] - waited[begin] for begin, end in pairwise(ends)]
        if not self._steps - 1 <= len(times) <= self._steps:
            raise ValueError(f"{len(times)} steps can be told apart in a log of {self._steps}")
        return later_ms([*times[:1] * (self._steps - len(times)), *times])

    def _native(self, factor: float) -> Any:
        made = self._machine.native()
        for rate in _RATES:
            setattr(made, rate, getattr(made, rate) / factor)
        made.min_kernel_ns *= factor
        return made

    def _with_budget(self, budget: int, memory: int) -> bytes:
        """The events as if recorded with another budget, on a card of that much memory: what
        managed memory may take is told anew.
        """
        made = bytearray(self._trace.events)
        header, at = ffi.sizeof("deepum_event_header"), 0
        while at < len(made):
            native = ffi.cast(
                "deepum_device_event *",
                ffi.addressof(ffi.from_buffer("uint8_t[]", made, require_writable=True), at),
            )
            if at + header > len(made) or not native.header.words:
                raise ValueError("the event log is damaged")
            if native.header.kind in _OF_CAPACITY:
                # Memory that is not managed.
                plain = max(0, self._recorded_budget - native.capacity_bytes)
                native.total_bytes, native.capacity_bytes = (
                    memory,
                    max(0, min(budget, memory) - plain),
                )
            at += native.header.words * 8
        return bytes(made)


def step_ends(waits: Sequence[int]) -> list[int]:
    """Of waits, by the launches before each, those that follow each other by equally many and so
    have the most between them: where steps end, as train.py waits at the end of each. What is
    waited for after the last step is less regular, or short.
    """
    there = set(waits)
    best: list[int] = []
    for number, first in enumerate(waits):
        for second in waits[number + 1 :]:
            chain = [first]
            while chain[-1] + second - first in there:
                chain.append(chain[-1] + second - first)
            if len(chain) > 2 and (not best or chain[-1] - chain[0] > best[-1] - best[0]):
                best = chain
    return best
