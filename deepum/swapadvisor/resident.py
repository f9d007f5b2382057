"""What a plan has on the device at one time, as buffers for an arena (deepum.arena): which memory
would do instead of a pool of size classes.
"""

from __future__ import annotations

from collections import defaultdict

from deepum.arena import Buffer, Problem
from deepum.swapadvisor.engine import Kind, Move, SwapPlan
from deepum.swapadvisor.graph import Graph


def resident(graph: Graph, plan: SwapPlan) -> list[Buffer]:
    """Each stay of a tensor in an object of the pool, in ns: from the beginning of its swap-in, or
    of the operator that makes it, to the end of its swap-out, or of its last use; to the end of the
    iteration where it stays beyond it.
    """
    used: dict[int, list[int]] = defaultdict(list)  # positions, by tensor
    for position, number in enumerate(plan.schedule.tolist()):
        for use in graph.operators[number].uses:
            used[use.tensor].append(position)
    behind: dict[int, int] = {}  # by tensor, the position of its stay that was seen last
    later: dict[int, Move] = {}  # by object, the entry that was seen last
    outs: dict[int, Move] = {}  # by object, the swap-out that comes before that entry
    found = []
    ordered = sorted(plan.moves, key=lambda move: move.kind is not Kind.HELD)  # those come last
    for move in reversed(ordered):
        if move.kind is Kind.OUT:
            outs[move.object] = move
            continue
        out, following = outs.pop(move.object, None), later.get(move.object)
        limit = behind.get(move.tensor, len(plan.runs))
        limit = min(limit, following.position) if following else limit
        uses = [plan.runs[at].end_ns for at in used[move.tensor] if move.position <= at < limit]
        begin = _begin(plan, move)
        end = max([begin, *uses])
        if out is not None:
            end = max(end, out.end_ns)
        elif following is None and graph.tensors[move.tensor].stays:
            end = max(end, plan.outcome.ns)
        behind[move.tensor], later[move.object] = move.position, move
        name = f"{move.tensor} in {move.object} at {move.position}"
        size = graph.tensors[move.tensor].bytes
        found.append(Buffer(name, int(begin), max(int(end), int(begin) + 1), size))
    return found[::-1]


def _begin(plan: SwapPlan, entry: Move) -> float:
    if entry.kind is Kind.PLACE and entry.position < len(plan.runs):
        return plan.runs[entry.position].start_ns
    return 0.0 if entry.kind is Kind.HELD else entry.start_ns


def arena_bytes(graph: Graph, plan: SwapPlan, seconds: float, seed: int) -> int:
    """Of the lowest arena that the search finds for what is resident in so many seconds."""
    search = Problem(resident(graph, plan)).search(0, seed)
    while search.advance(seconds):
        continue
    return search.height
