"""What a workload does under one policy on one machine, over time: the replay's activities beside
the program's memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepum._core import lib
from deepum.core import Allocate, Block, Execute, Free, events
from deepum.errors import UsageError
from deepum.simulate.mode import DEFAULT, Mode
from deepum.simulate.policies import Policy
from deepum.simulate.policy_run import run
from deepum.simulate.preset import preset_of
from deepum.simulate.steps import step_ends
from deepum.simulate.workload import Workload
from deepum.trace import Trace

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Records = npt.NDArray[np.void]  # of deepum.simulate.replay.ACTIVITY

# What the machine does, which tells how much is resident then; the other kinds are of the program's
# and the core's side.
OF_MACHINE = (
    "kernel",
    "fill",
    "copy_in",
    "copy_out",
    "prefetch",
    "evict",
    "fault",
    "driver_evict",
    "remote_in",
    "remote_out",
    "discard",
    "release",
)
KINDS: dict[str, int] = {
    name: getattr(lib, f"DEEPUM_ACTIVITY_{name.upper()}")
    for name in (*OF_MACHINE, "hold", "decision")
}
# What crosses the link, by direction, in the order in which lanes show it.
INTO_DEVICE = ("prefetch", "fault", "copy_in", "remote_in")
OUT_OF_DEVICE = ("evict", "driver_evict", "copy_out", "remote_out")


@dataclass(frozen=True)
class Launches:
    """A trace's launches, one element each; bytes when it was launched.

    `allocated`: managed memory of the program. `used`: of it, what the program has in use:
    PyTorch's blocks that are handed out, and all of an allocation of which PyTorch never reports
    blocks. The rest is dead: nobody will read it before writing.
    """

    sequence: Integers
    execution_hash: npt.NDArray[np.uint64]
    stream: Integers
    allocated: Integers
    used: Integers


@dataclass(frozen=True)
class Timeline:
    """`activities`: by start. `steps`: ns, ends of steps; empty if the run does not repeat itself.
    `gbps`: of the link, in and out.
    """

    workload: str
    policy: str
    machine: str
    memory_bytes: int
    gbps: tuple[float, float]
    ns: float
    activities: Records
    launches: Launches
    steps: list[float]
    names: dict[int, str]

    def of(self, *kinds: str) -> Records:
        """The activities of these kinds."""
        return self.activities[np.isin(self.activities["kind"], [KINDS[kind] for kind in kinds])]

    def launched(self, tags: npt.NDArray[np.uint64]) -> Integers:
        """Places in `launches` of activities by their tags; -1 for what is no launch of the
        trace.
        """
        found = np.searchsorted(self.launches.sequence, tags.astype(np.int64))
        inside = np.minimum(found, max(len(self.launches.sequence) - 1, 0))
        if not len(self.launches.sequence):
            return np.full(len(tags), -1)
        return np.where(self.launches.sequence[inside] == tags, inside, -1)

    def kernel_name(self, launch: int) -> str:
        """The kernel's name where that is known, else its execution hash."""
        execution_hash = int(self.launches.execution_hash[launch])
        return self.names.get(execution_hash, f"{execution_hash:016x}")


def launches(trace: Trace) -> Launches:
    """The trace's launches with the program's memory at each. Raises ValueError for a damaged
    trace.
    """
    log = list(events(trace.events))
    reported = {(event.slot, event.generation) for event in log if isinstance(event, Block)}
    sizes: dict[tuple[int, int], int] = {}
    blocks: dict[tuple[int, int], dict[int, int]] = {}
    allocated = used = 0
    rows = []
    for event in log:
        if isinstance(event, Execute):
            rows.append((event.sequence, event.stream, allocated, used))
        elif isinstance(event, Block):
            key = event.slot, event.generation
            handed_out = blocks.setdefault(key, {})
            used -= handed_out.pop(event.offset, 0)
            if event.kind == "block_active":
                handed_out[event.offset] = event.bytes
                used += event.bytes
        elif isinstance(event, Allocate):
            key = event.slot, event.generation
            if key not in sizes:  # else announced once more
                sizes[key] = event.bytes
                allocated += event.bytes
                used += 0 if key in reported else event.bytes
        elif isinstance(event, Free):
            key = event.slot, event.generation
            size = sizes.pop(key, 0)
            allocated -= size
            used -= sum(blocks.pop(key, {}).values()) if key in reported else size
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    hashes = np.array(
        [event.execution_hash for event in log if isinstance(event, Execute)], dtype=np.uint64
    )
    return Launches(table[:, 0], hashes, table[:, 1], table[:, 2], table[:, 3])


def observe(
    workload: Workload,
    on: str,
    policy: Policy,
    memory_bytes: int | None = None,
    launch_queue: int | None = None,
    known: Launches | None = None,
    mode: Mode = DEFAULT,
) -> Timeline:
    """Replays the workload under the policy and keeps what happens. `known`: its launches, if they
    were read before. Raises UsageError.
    """
    preset = preset_of(on)
    outcome = run(workload, on, policy, memory_bytes, launch_queue, mode=mode, keep_activities=True)
    try:
        known = known or launches(workload.trace)
        ends = step_ends(outcome, workload.trace)
    except ValueError as error:
        raise UsageError(f"workload {workload.name}: {error}; record it anew") from None
    return Timeline(
        workload.name,
        policy.name,
        on,
        memory_bytes or int(preset.memory_bytes),
        (float(preset.h2d_gbps), float(preset.d2h_gbps)),
        outcome.ns,
        outcome.activities,
        known,
        [mark.ns for mark in ends],
        workload.names,
    )
