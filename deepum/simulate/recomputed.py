"""The program of a recomputing policy, for the replay: it is rewritten step by step, while it
runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from deepum.errors import UsageError
from deepum.recomputation.joined import Joined
from deepum.recomputation.reading import items, others, refusal
from deepum.recomputation.within import Within, within_card
from deepum.rematerialise.heuristics import Path, named
from deepum.simulate.replay import Launch
from deepum.simulate.workload import Workload


@dataclass
class Recomputing:
    """`ns`: what launches take, by sequence. `memory_bytes`: of the card; `link_ns`: of a byte on
    the link. `moves`: not all has to fit the card. `heuristic`: by which it does, of
    deepum.rematerialise.
    """

    workload: Workload
    ns: dict[int, int]
    memory_bytes: int
    link_ns: float
    moves: bool = True
    heuristic: str | None = None

    def chunks(self, ended: Callable[[int], float]) -> Iterator[tuple[bytes, bytes]]:
        """As `deepum.simulate.replay.Program` has it."""
        trace = self.workload.trace
        slots, program = others(trace), items(trace, self.ns)
        if self.moves:
            yield from Joined(self.memory_bytes, self.link_ns, ended, slots).run(program)
        elif self.heuristic is not None:
            yield from Within(self.memory_bytes, named(self.heuristic), slots).run(program)
        else:
            yield from within_card(self.memory_bytes, Path(), lambda: items(trace, self.ns), slots)


def recomputing(
    workload: Workload,
    launches: list[Launch],
    memory_bytes: int,
    link_ns: float,
    moves: bool,
    heuristic: str | None = None,
) -> Recomputing:
    """`launches`: of the workload with all of its memory on the card. Raises UsageError for a
    program that cannot be followed, and ValueError for a damaged trace.
    """
    if (reason := refusal(workload.trace)) is not None:
        raise UsageError(
            f"workload {workload.name}: cannot be computed again, since it {reason}; leave out the "
            f"policies that recompute"
        )
    ns = {launch.sequence: round(launch.kernel_ns) for launch in launches}
    return Recomputing(workload, ns, memory_bytes, link_ns, moves, heuristic)
