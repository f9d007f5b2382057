"""The steady iteration of a recorded program, for planners (deepum.planners)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from deepum.errors import DeepumError
from deepum.planners.iteration import Event, Iteration, Link, merged
from deepum.simulate import bound, needs
from deepum.simulate.policies import BY_NAME
from deepum.simulate.policy_run import run
from deepum.simulate.preset import preset_of
from deepum.simulate.steps import WARM_UP, step_ends
from deepum.simulate.workload import Workload
from deepum.simulate.workload_bounds import lower_bounds

ITEM_BYTES = 16 << 20  # of an item at most
_ALIKE = 1e-3  # part of the bytes that may differ: blocks change places


@dataclass(frozen=True)
class SteadyIteration:
    """The iteration, the link that it is planned for, and the lower bound of unified memory for a
    steady one, in ns. repeats: the step before used as much memory at each launch, but for a
    thousandth; else the bound, of the mean of the steady steps, is of others than the iteration.
    """

    iteration: Iteration
    link: Link
    bound_ns: float
    repeats: bool = True


def iteration_of(works: Sequence[bound.Work], item_bytes: int = ITEM_BYTES) -> Iteration:
    """That of launches whose pieces of content are known."""
    events: dict[Hashable, list[Event]] = defaultdict(list)
    sizes: dict[Hashable, int] = {}
    for launch, work in enumerate(works):
        for use in work.uses:
            sizes[use.key] = use.bytes
            needed = use.reads or not use.fresh
            events[use.key].append(Event(launch, needed, use.writes or not needed))
        used = {use.key for use in work.uses}
        for piece in work.dies:  # behind the launch that uses it, before one that does not
            events[piece].append(Event.death((launch + (piece in used)) % len(works)))
    pieces = ((sizes[key], events[key]) for key in sizes)
    return Iteration(tuple(work.ns for work in works), merged(pieces, item_bytes))


def steady_iteration(
    workload: Workload, machine: str, memory_bytes: int | None = None
) -> SteadyIteration:
    """The iteration that the workload is, or its last step but one, for a card of so many bytes
    (the machine's unless given). Raises DeepumError where what its launches use is not known, or
    where it takes fewer than four steps.
    """
    figures = preset_of(machine)
    link = bound.Link(
        memory_bytes or int(figures.memory_bytes), float(figures.h2d_gbps), float(figures.d2h_gbps)
    )
    planned = Link(link.memory, link.in_gbps, link.out_gbps)
    if workload.kernels is not None:
        _, (least,) = lower_bounds(workload, None, [link], WARM_UP)
        assert least is not None  # it is known of an iteration that the workload is
        return SteadyIteration(iteration_of(workload.kernels), planned, least)
    unlimited = run(workload, machine, BY_NAME["unlimited"], keep_launches=True)
    ends = step_ends(unlimited, workload.trace)
    if len(ends) < 4:
        raise DeepumError(f"{workload.name}: takes {len(ends)} steps; record at least four")
    _, (least,) = lower_bounds(workload, unlimited, [link], WARM_UP)
    works = needs.by_launch(workload.trace, unlimited.launches, ends[-4:-1])
    if least is None or works is None or not works[-1]:
        raise DeepumError(
            f"{workload.name}: what its launches use is not known, so that nothing can be planned; "
            f"record it with its work, on one stream"
        )
    before, last = works
    return SteadyIteration(iteration_of(last), planned, least, _alike(_used(before), _used(last)))


def _used(works: Sequence[bound.Work]) -> list[int]:
    """Bytes, by launch."""
    return [sum(use.bytes for use in work.uses) for work in works]


def _alike(one: Sequence[int], other: Sequence[int]) -> bool:
    differ = sum(abs(a - b) for a, b in zip(one, other, strict=False))
    return len(one) == len(other) and differ <= _ALIKE * sum(other)
