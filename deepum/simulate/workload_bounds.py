"""Lower bounds of a workload's steady step, by what its launches need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from deepum.recomputation.reading import items, refusal
from deepum.simulate import bound, recomputed_bound
from deepum.simulate.needs import Steps, needs
from deepum.simulate.replay import Outcome
from deepum.simulate.steps import steady_range, step_ends
from deepum.simulate.workload import Workload

_Limits = Sequence[float | None]  # by link


@dataclass(frozen=True)
class _Counted:
    """What the launches of a replay need, and the steps of it that count: how many they are, and
    the gaps before and behind them.
    """

    needs: Steps
    steps: int
    gaps: tuple[int, int]


def _counted(workload: Workload, unlimited: Outcome | None, warm_up: int) -> _Counted | None:
    """None where what they need is not known."""
    ends = step_ends(unlimited, workload.trace) if unlimited is not None else []
    if unlimited is None or not ends:
        return None
    found = needs(workload.trace, unlimited.launches, ends)
    if found is None:
        return None
    steps = steady_range(len(ends), warm_up)
    before = found.gaps[steps[0] - 1] if steps[0] else 0
    return _Counted(found, len(steps), (before, found.gaps[steps[-1]]))


def lower_bounds(
    workload: Workload, unlimited: Outcome | None, links: Sequence[bound.Link], warm_up: int
) -> tuple[_Limits, _Limits]:
    """The bounds of a steady step by link, ns, and those where content is kept; None where what its
    launches need is not known. `unlimited`: the workload with all of its memory on the card.
    """
    if workload.kernels is not None:
        # Known without its memory: nothing there outlives its last use but what comes back in the
        # next iteration.
        known = [bound.periodic(workload.kernels, link).ns for link in links]
        return known, known
    counted = _counted(workload, unlimited, warm_up)
    if counted is None:
        return [None] * len(links), [None] * len(links)
    limits = [
        bound.between(counted.needs.works, link, *counted.gaps).ns / counted.steps for link in links
    ]
    if counted.needs.kept is None:
        return limits, limits
    kept = [
        bound.between(counted.needs.kept, replace(link, kept=True), *counted.gaps).ns
        / counted.steps
        for link in links
    ]
    # What holds for all holds for those who keep, and it alone asks for the disk.
    return limits, [max(each) for each in zip(limits, kept, strict=True)]


def recomputing_bound(
    workload: Workload, unlimited: Outcome | None, link: bound.Link, warm_up: int
) -> float | None:
    """Of a steady step, where content may be computed again; None where that is not known."""
    if unlimited is None or refusal(workload.trace) is not None:
        return None
    counted = _counted(workload, unlimited, warm_up)
    if counted is None:
        return None
    ns = {launch.sequence: round(launch.kernel_ns) for launch in unlimited.launches}
    droppable = recomputed_bound.stretches(items(workload.trace, ns))
    found = counted.needs
    return (
        recomputed_bound.between(found.works, link, *counted.gaps, droppable, found.launches)
        / counted.steps
    )
