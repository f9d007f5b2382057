"""Plain and slow: an engine that looks at all nodes at each moment, and what a plan has to keep."""

from __future__ import annotations

import itertools

from deepum.swapadvisor import Engine, SwapPlan
from deepum.swapadvisor.engine import Kind

# Start and end of operators, by position, and of moves that take time, by number.
Times = tuple[dict[int, tuple[float, float]], dict[int, tuple[float, float]]]
_EPSILON = 1e-9


def run(engine: Engine, plan: SwapPlan) -> Times:
    """Each stream takes, of its nodes that wait for nothing, the one that was planned first."""
    graph, link = engine.graph, engine.link
    operators: dict[int, tuple[float, float]] = {}
    moves: dict[int, tuple[float, float]] = {}
    timed = [n for n, move in enumerate(plan.moves) if move.kind in (Kind.IN, Kind.OUT)]
    free = dict.fromkeys(("compute", Kind.IN, Kind.OUT), 0.0)
    now = 0.0

    def over(node: tuple[float, float] | None) -> bool:
        return node is not None and node[1] <= now

    while len(operators) + len(moves) < len(graph.operators) + len(timed):
        position = len(operators)
        if position < len(graph.operators) and free["compute"] <= now:
            waits = [n for n in timed if plan.moves[n].position == position]
            if all(over(moves.get(n)) for n in waits):
                end = now + graph.operators[int(plan.schedule[position])].ns
                operators[position], free["compute"] = (now, end), end
        for number in timed:
            move = plan.moves[number]
            before = move.after_operator
            if (
                number not in moves
                and free[move.kind] <= now
                and (before is None or over(operators.get(before)))
                and all(over(moves.get(other)) for other in move.after_moves)
            ):
                rate = link.in_gbps if move.kind is Kind.IN else link.out_gbps
                end = now + graph.tensors[move.tensor].bytes / rate
                moves[number], free[move.kind] = (now, end), end
        ends = [end for _, end in [*operators.values(), *moves.values()] if end > now]
        assert ends or len(operators) + len(moves) == len(graph.operators) + len(timed)
        now = min(ends, default=now)
    return operators, moves


def check(engine: Engine, plan: SwapPlan) -> None:
    """Every operator finds its tensors, with what was last written, in objects of their classes,
    and no object has two tensors at a time; in two iterations, so that the second begins with what
    the first has left.
    """
    graph, counts = engine.graph, plan.allocation.counts
    of_size = plan.allocation.classes
    class_of = [of_size[size] - 1 for size in engine.sizes.of_tensor.tolist()]
    versions = [0 if tensor.starts else -1 for tensor in graph.tensors]
    held = {move.tensor: move.object for move in plan.moves if move.kind is Kind.HELD}
    host = list(versions)
    left = {tensor: versions[tensor] for tensor in held}
    for _ in range(2):
        for tensor, one in enumerate(graph.tensors):
            if one.starts and not one.stays:
                host[tensor] = versions[tensor]  # an input comes anew
        left = _iteration(engine, plan, held, versions, host, left)
    object_class = {move.object: class_of[move.tensor] for move in plan.moves}
    for move in plan.moves:
        assert object_class[move.object] == class_of[move.tensor]
    for number, count in enumerate(counts):
        assert sum(of_class == number for of_class in object_class.values()) <= count


def _iteration(
    engine: Engine,
    plan: SwapPlan,
    held: dict[int, int],
    versions: list[int],
    host: list[int],
    left: dict[int, int],
) -> dict[int, int]:
    """Of what is held the versions that it leaves; `versions` and `host` go on."""
    graph = engine.graph
    pool = {number: (tensor, left[tensor]) for tensor, number in held.items()}
    where = dict(held)
    stays: list[tuple[int, float, float]] = []  # object, from, to
    since = dict.fromkeys(held, 0.0)
    used = dict.fromkeys(held, 0.0)

    def empty(number: int, until: float | None = None) -> None:
        if number in pool:
            tensor = pool.pop(number)[0]
            stays.append((number, since[tensor], used[tensor] if until is None else until))
            where.pop(tensor, None)

    def fill(number: int, tensor: int, version: int, start: float) -> None:
        empty(number)
        pool[number], where[tensor], since[tensor] = (tensor, version), number, start

    numbered = [move for move in plan.moves if move.kind is not Kind.HELD]
    for position, operator in enumerate([*plan.schedule.tolist(), None]):
        for move in [move for move in numbered if move.position == position]:
            if move.kind is Kind.OUT:
                assert pool[move.object] == (move.tensor, versions[move.tensor])
                host[move.tensor] = versions[move.tensor]
                empty(move.object, move.end_ns)
            elif move.kind is Kind.IN:
                fill(move.object, move.tensor, host[move.tensor], move.start_ns)
            else:
                fill(move.object, move.tensor, -2, plan.runs[position].start_ns)
        for use in graph.operators[operator].uses if operator is not None else ():
            number = where[use.tensor]
            assert not use.reads or pool[number] == (use.tensor, versions[use.tensor])
            if use.writes:
                versions[use.tensor] += 1
                pool[number] = (use.tensor, versions[use.tensor])
            used[use.tensor] = plan.runs[position].end_ns
    last = {tensor: pool[where[tensor]][1] for tensor in held}
    assert last == {tensor: versions[tensor] for tensor in held}
    for tensor, one in enumerate(graph.tensors):
        assert not one.stays or tensor in held or host[tensor] == versions[tensor]
    for number in list(pool):
        empty(number, plan.outcome.ns)
    for number in {one for one, _, _ in stays}:
        mine = sorted((start, end) for of, start, end in stays if of == number)
        for (_, end), (start, _) in itertools.pairwise(mine):
            assert end <= start + _EPSILON
    return last
