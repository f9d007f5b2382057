"""From the steady iteration of a program (deepum.planners) to a dataflow graph, and back to an
iteration in a schedule's order.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from deepum.planners import Event, Item, Iteration
from deepum.planners.iteration import merged
from deepum.swapadvisor.graph import Graph, Operator, Schedule, Tensor, Use


@dataclass(frozen=True)
class _Life:
    """Content, from the launch that overwrites what was there to its end: (launch, reads, writes)
    of each use.
    """

    uses: tuple[tuple[int, bool, bool], ...]
    is_parameter: bool = False


def _lives(item: Item) -> list[_Life]:
    """Memory is used for one content after the other; each is a tensor of its own. What the
    iteration finds and leaves is a parameter, with all uses before it ends and after it is made
    anew.
    """
    lives: list[list[tuple[int, bool, bool]]] = []
    alive = carried = False
    for event in item.events:
        if event.dies:
            alive = False
            continue
        if not lives and event.reads:
            # Dead before: what the program brings itself, at no cost of the plan's.
            carried = item.events[0] is event
            lives.append([(event.launch, carried, event.writes or not carried)])
        elif alive and event.reads:
            lives[-1].append((event.launch, True, event.writes))
        else:
            lives.append([(event.launch, False, True)])
        alive = True
    if not carried:
        return [_Life(tuple(life)) for life in lives]
    if not alive:  # the program brings it before the next iteration
        (launch, _, _), *rest = lives[0]
        return [_Life(((launch, False, True), *rest)), *(_Life(tuple(life)) for life in lives[1:])]
    own = lives[0] if len(lives) == 1 else lives[0] + lives[-1]
    return [_Life(tuple(own), True), *(_Life(tuple(life)) for life in lives[1:-1])]


def graph_of(iteration: Iteration) -> Graph:
    """Launches as operators. Content that the same launches use alike is one tensor."""
    sizes: dict[_Life, int] = defaultdict(int)
    for item in iteration.items:
        for life in _lives(item):
            sizes[life] += item.bytes
    uses: list[list[Use]] = [[] for _ in iteration.launch_ns]
    for number, life in enumerate(sizes):
        for launch, reads, writes in life.uses:
            uses[launch].append(Use(number, reads, writes))
    operators = (
        Operator(f"launch {number}", ns, tuple(mine))
        for number, (ns, mine) in enumerate(zip(iteration.launch_ns, uses, strict=True))
    )
    tensors = (Tensor(size, life.is_parameter, life.is_parameter) for life, size in sizes.items())
    return Graph(tuple(operators), tuple(tensors))


def iteration_of(graph: Graph, schedule: Schedule, most_bytes: int = 16 << 20) -> Iteration:
    """The graph's operators in that order as an iteration for deepum's planners, tensors cut to
    items of so many bytes at most. Content ends behind its last use.
    """
    events: list[list[Event]] = [[] for _ in graph.tensors]
    order = schedule.tolist()
    for position, operator in enumerate(order):
        for use in graph.operators[operator].uses:
            events[use.tensor].append(
                Event(position, reads=use.reads, writes=use.writes or not use.reads)
            )
    for tensor, mine in zip(graph.tensors, events, strict=True):
        if mine and not tensor.stays:
            mine.append(Event.death((mine[-1].launch + 1) % len(order)))
    pieces = ((tensor.bytes, mine) for tensor, mine in zip(graph.tensors, events, strict=True))
    return Iteration(
        tuple(graph.operators[operator].ns for operator in order), merged(pieces, most_bytes)
    )
