"""A workload's iteration as a core records it, by names that hold in the next run, for a plan that
is followed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from deepum.core import Core, Execute, LaunchTime, Plan, Recording, events_of
from deepum.core.plan_requests import PlanInput, Request
from deepum.core.planned import PlannedPolicy
from deepum.errors import DeepumError, UsageError
from deepum.planners.problem import Floats
from deepum.simulate.policies import BY_NAME
from deepum.simulate.policy_run import run
from deepum.simulate.preset import preset_of
from deepum.simulate.replay import Launch, replay
from deepum.simulate.workload import Workload, load
from deepum.trace import Trace

# In which an iteration is detected, recorded and timed: more where it has few launches.
_STEPS = (16, 64, 256)


class _RequestSink:
    """Keeps what a plan is asked for with, and plans nothing."""

    def __init__(self) -> None:
        self.asked: PlanInput | None = None

    def begin(self, asked: PlanInput) -> None:
        """As `deepum.core.planned.Planning` has it."""
        self.asked = asked

    def poll(self) -> Plan | str | None:
        """That there is no plan."""
        return None if self.asked is None else "the iteration is recorded"

    def stop(self) -> None:
        """Nothing is under way."""


def recorded(name: str, machine: str | None, on: str, memory_bytes: int | None) -> Request:
    """What `planned` would ask for a plan with, for the workload of that name, loaded for
    `machine` (its own unless given), on a card of so many bytes (the machine's unless given).
    Raises DeepumError where the program does not repeat itself for long enough, and UsageError.
    """
    for steps in [None] if Path(name).is_file() else _STEPS:
        workload = load(name, steps, False, machine)
        if (found := request(workload, on, memory_bytes)) is not None:
            return found
    raise DeepumError(
        f"{workload.name}: no iteration repeats itself for long enough to be recorded; record "
        f"more of them"
    )


def request(workload: Workload, machine: str, memory_bytes: int | None) -> Request | None:
    """The same of a workload that is loaded. None where it does not repeat itself for long enough.
    Raises UsageError.
    """
    preset, policy, sink = preset_of(machine), BY_NAME["planned"], _RequestSink()

    def watch(core: Core) -> Callable[[], None]:
        return PlannedPolicy(core, sink).poll

    try:
        replay(
            workload.trace,
            preset,
            policy.settings(int(preset.launch_queue)),
            memory_bytes or int(preset.memory_bytes),
            observe_times=True,
            watch=watch,
        )
    except ValueError as error:
        raise UsageError(f"workload {workload.name}: {error}; record it anew") from None
    if sink.asked is None:
        return None
    recording = sink.asked.recording
    # Of a run that is not observed: there launches have the sequences of their events.
    unlimited = run(workload, machine, BY_NAME["unlimited"], keep_launches=True)
    times = _times(recording, _launch_ns(workload.trace, unlimited.launches))
    asked = replace(sink.asked, times=times)
    return Request.of(asked, float(preset.h2d_gbps), float(preset.d2h_gbps))


def _launch_ns(trace: Trace, launches: Sequence[Launch]) -> Floats:
    """What each launch that the core was told of takes by the model, without waiting; what it was
    not told of counts with the one before.
    """
    sequences = [event.sequence for event in events_of(trace.events, Execute)]
    sequence = np.array([launch.sequence for launch in launches], dtype=np.int64)
    number = np.searchsorted(np.array(sequences, dtype=np.int64), sequence, side="right") - 1
    ns = np.array([launch.kernel_ns for launch in launches], dtype=np.float64)
    by_number: Floats = np.bincount(np.maximum(number, 0), ns, len(sequences)).astype(np.float64)
    return by_number


def _times(recording: Recording, took: Floats) -> tuple[LaunchTime, ...]:
    """Of the recorded launches, one after the other. Those that a core is told of are of groups of
    launches, with what they waited for.
    """
    rows = np.frombuffer(recording.launches, "<u8").reshape(-1, 2)
    first, count = int(rows[0][1]), len(rows)
    us = np.round(np.r_[0.0, np.cumsum(took[first - 1 : first - 1 + count])] / 1e3).astype(int)
    return tuple(LaunchTime(first - 1 + i, 1 + at, 0) for i, at in enumerate(us.tolist()))
