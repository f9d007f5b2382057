"""From the marks of a replay to the steps of a program: how long each took, what it moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepum.core import Execute, events_of
from deepum.simulate.replay import Mark, Outcome
from deepum.trace import Trace

WARM_UP = 3  # steps that are not counted: "from the fourth iteration on"
COUNTED = (
    "faults",
    "fault_batches",
    "bytes_h2d",
    "bytes_d2h",
    "bytes_demand",
    "bytes_driver_evicted",
    "bytes_discarded",
    "bytes_disk_read",
    "bytes_disk_written",
    "stall_ns",
)
_ALIKE = 0.5  # of the launches, at least: runs have beginnings and ends
_TRIED = 64  # waits from which distances are measured
_NEARLY = 0.9  # of the most
_MOSTLY = 0.75  # of the launches of a step
_MOST_REPETITIONS = 64


@dataclass(frozen=True)
class Step:
    """ns of virtual time, launches, and how far each counter of COUNTED went."""

    ns: float
    launches: int
    counts: dict[str, float]


def _between(before: Mark | None, after: Mark) -> Step:
    counts = {
        name: after.counters[name] - (before.counters[name] if before else 0) for name in COUNTED
    }
    return Step(
        after.ns - (before.ns if before else 0),
        after.launches - (before.launches if before else 0),
        counts,
    )


def period(hashes: Sequence[int], waits: Sequence[int]) -> int | None:
    """Launches after which a program launches the same again; None if it never does. `waits`:
    launches before each wait.

    Tried are the distances between three waits in a row; taken is the shortest after which nearly
    as much is the same again as after any. Both from the first quarter on: what comes before and
    after the steps is not like them. Layers repeat, too, but nobody waits for them.
    """
    sequence = np.array(hashes, dtype=np.uint64)
    behind = sequence[len(sequence) // 4 :]
    there = {wait for wait in waits if wait >= len(sequence) // 4}
    alike: dict[int, float] = {}
    for distance in sorted(
        {
            later - earlier
            for later in there
            for earlier in sorted(there)[-_TRIED:]
            if later > earlier
        }
    ):
        if distance * 2 <= len(behind) and any(
            {wait - distance, wait - 2 * distance} <= there for wait in there
        ):
            alike[distance] = float(np.mean(behind[distance:] == behind[:-distance]))
    best = max(alike.values(), default=0)
    return next(
        (distance for distance, share in alike.items() if share >= max(_ALIKE, _NEARLY * best)),
        None,
    )


def _ends(waits: Sequence[Mark], distance: int) -> list[Mark]:
    """Waits that follow each other by so many launches, up to the last that can be."""
    by_launches = {mark.launches: mark for mark in waits}
    for last in sorted(by_launches, reverse=True):
        if last - distance in by_launches and last - 2 * distance in by_launches:
            return [
                by_launches[at]
                for at in range(last % distance, last + 1, distance)
                if at in by_launches
            ]
    return []


def step_ends(outcome: Outcome, trace: Trace) -> list[Mark]:
    """Where steps end: where the trace tells it; else at waits of the program, as many launches
    apart as it takes for these to repeat. Empty if the run does not repeat itself.
    """
    ends = [mark for mark in outcome.marks if mark.kind == "step"]
    waits = [mark for mark in outcome.marks if mark.kind == "synchronise"]
    if not ends and waits:
        launched = [event.execution_hash for event in events_of(trace.events, Execute)]
        distance = period(launched, [mark.launches for mark in waits])
        ends = _ends(waits, distance) if distance is not None else []
    return ends


def most_come(hashes: Sequence[int]) -> int:
    """How often most of these launches come: the greatest number of which the counts of three
    quarters of them are multiples.
    """
    often = Counter(Counter(hashes).values())  # by how often: so many executions

    def share(divisor: int) -> float:
        return sum(
            times * executions for times, executions in often.items() if times % divisor == 0
        ) / len(hashes)

    return max(
        (
            divisor
            for divisor in range(2, _MOST_REPETITIONS + 1)
            if hashes and share(divisor) >= _MOSTLY
        ),
        default=1,
    )


def repetitions(outcome: Outcome, trace: Trace) -> int:
    """That, in a step that is told by the program's waits: 2 where it waits after every other
    iteration only, as one that logs then does, or where it accumulates gradients over two batches.
    1 where the trace tells steps, or there are none.
    """
    ends = step_ends(outcome, trace)
    if len(ends) < 2 or ends[-1].kind == "step":
        return 1
    launched = [event.execution_hash for event in events_of(trace.events, Execute)]
    return most_come(launched[ends[-2].launches : ends[-1].launches])


def repeated(times: int) -> str | None:
    """What is to be said of that; nothing where launches come once in a step."""
    if times < 2:
        return None
    why = (
        f"the program waits for the GPU after every {times} iterations only, or accumulates over "
        f"{times} batches"
    )
    return f"in a step most launches come {times} times: {why}"


def steps(outcome: Outcome, trace: Trace) -> list[Step]:
    """The steps, from end to end. One step, the whole run, if it does not repeat itself."""
    ends = step_ends(outcome, trace)
    if not ends:
        return [
            Step(
                outcome.ns,
                outcome.core.launches,
                {name: outcome.counters[name] for name in COUNTED},
            )
        ]
    return [_between(before, after) for before, after in zip([None, *ends], ends, strict=False)]


def steady_range(count: int, warm_up: int = WARM_UP) -> range:
    """Which of so many steps count: those after the warm-up, without the last: what follows it in a
    longer run has begun before its end. All but the first where there are too few.
    """
    return range(warm_up, count - 1) or range(1, count) or range(count)


def steady(all_steps: Sequence[Step], warm_up: int = WARM_UP) -> list[Step]:
    """The steps that count."""
    return [all_steps[number] for number in steady_range(len(all_steps), warm_up)]
