"""The heuristic of Lee's thesis (SNU, section 4.5), in the states of its integer program: what is
followed until that is solved, and what it begins with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from deepum.planners.ilp.pattern import Pattern, Stretch
from deepum.planners.ilp.thesis import State


@dataclass
class _Moves:
    """A stretch in which a tensor leaves: at operation `out` it is swapped out, or is out already
    where the host has the same; at `back` it is swapped in.
    """

    stretch: Stretch
    copies: bool
    out: int
    back: int

    @property
    def away(self) -> range:
        """Operations at which it has no memory."""
        return range(self.out + 1 if self.copies else self.out, self.back)


class Heuristic:
    """Of a pattern. Everything is swapped in before each operation that needs it and out behind it,
    as far as there are operations in between to do it at; then the four steps.
    """

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._count = len(pattern)
        self._held = [pattern.reserved[o] if pattern.reserved else 0 for o in range(self._count)]
        self._dead = [one.dead(self._count) for one in pattern.tensors]
        for one, dead in zip(pattern.tensors, self._dead, strict=True):
            for operation in set(range(self._count)) - dead:
                self._held[operation] += one.bytes
        self._inward, self._outward = [0.0] * self._count, [0.0] * self._count
        self._moves = [list(self._all_leaves(number)) for number in range(len(pattern.tensors))]
        for moves in self._moves:
            for move in moves:
                self._count_in(move, 1)

    def states(self) -> list[list[State]] | None:
        """By tensor and operation, after the four steps. None where something does not fit even
        with everything away that can be.
        """
        if not self._fits():
            return None
        largest = sorted(
            range(len(self._moves)), key=lambda tensor: -self._pattern.tensors[tensor].bytes
        )
        for tensor in largest:  # step 3
            for stretch in [one.stretch for one in self._moves[tensor]]:
                self._keep(tensor, stretch)
        for tensor in largest:  # step 4
            for one in self._moves[tensor]:
                self._overlap(one)
        return [self._of(tensor) for tensor in range(len(self._moves))]

    def _all_leaves(self, number: int) -> Iterator[_Moves]:
        """A swap-out behind each access and a swap-in before the next. Step 1, of write-only
        accesses, is the program's: what it asks a swap-in for has one.
        """
        stretches = self._pattern.stretches(number)
        # From behind a write on, so that the first of a version comes first.
        first = next((i for i, one in enumerate(stretches) if one.writer == one.start), 0)
        return self._copied_once(
            _Moves(one, True, one.start + 1, one.end - 1)
            for one in [*stretches[first:], *stretches[:first]]
            if one.death is None
        )

    def _copied_once(self, moves: Iterable[_Moves]) -> Iterator[_Moves]:
        """Step 2: the first behind a write copies. Those that would never be away are left out."""
        copied: set[int] = set()
        for one in moves:
            writer = None if one.stretch.writer is None else one.stretch.writer % self._count
            made = replace(one, copies=writer is not None and writer not in copied)
            if made.away:
                yield made
                if writer is not None:
                    copied.add(writer)

    def _fits(self) -> bool:
        return max(self._held) <= self._pattern.link.memory_bytes

    def _keep(self, tensor: int, stretch: Stretch) -> None:
        """Drops that stretch's pair if all fits without; the next one behind the write copies."""
        before = self._moves[tensor]
        others = (one for one in before if one.stretch != stretch)
        self._change(tensor, list(self._copied_once(others)))
        if not self._fits():
            self._change(tensor, before)

    def _change(self, tensor: int, moves: list[_Moves]) -> None:
        for each in self._moves[tensor]:
            self._count_in(each, -1)
        for each in moves:
            self._count_in(each, 1)
        self._moves[tensor] = moves

    def _count_in(self, one: _Moves, sign: int) -> None:
        tensor, count = one.stretch.tensor, self._count
        for at in one.away:
            self._held[at % count] -= sign * self._pattern.tensors[tensor].bytes
        self._inward[one.back % count] += sign * self._pattern.in_ns(tensor)
        if one.copies:
            self._outward[one.out % count] += sign * self._pattern.out_ns(tensor)

    def _stall(self) -> float:
        return sum(
            max(0.0, max(inward, outward) - duration)
            for inward, outward, duration in zip(
                self._inward, self._outward, self._pattern.durations_ns, strict=True
            )
        )

    def _overlap(self, one: _Moves) -> None:
        """The swap-out later, then the swap-in earlier, where that waits least."""
        for name, step in (("out", 1), ("back", -1)):
            if name == "out" and not one.copies:
                continue
            least, best = self._stall(), getattr(one, name)
            at = best
            while True:
                at += step
                self._count_in(one, -1)
                before = getattr(one, name)
                setattr(one, name, at)
                self._count_in(one, 1)
                if not one.away or not self._fits():
                    self._count_in(one, -1)
                    setattr(one, name, before)
                    self._count_in(one, 1)
                    break
                if self._stall() < least - 1e-9:
                    least, best = self._stall(), at
            self._count_in(one, -1)
            setattr(one, name, best)
            self._count_in(one, 1)

    def _of(self, tensor: int) -> list[State]:
        """The tensor's states. It is clean behind a swap-in or before any write."""
        count, one = self._count, self._pattern.tensors[tensor]
        leaves = {move.stretch.start: move for move in self._moves[tensor]}
        written = any(access.writes for access in one.accesses.values())
        found = [State.STAY_DIRTY if written else State.STAY_CLEAN] * count
        copied: set[int] = set()  # writers whose content the host has
        stretches = self._pattern.stretches(tensor)
        first = next((i for i, each in enumerate(stretches) if each.writer == each.start), 0)
        for each in [*stretches[first:], *stretches[:first]]:
            writer = None if each.writer is None else each.writer % count
            clean = writer is None or writer in copied
            if each.start != each.writer and clean:
                found[each.start] = State.STAY_CLEAN
            move = leaves.get(each.start)
            for at in range(each.start + 1, each.end):
                state = State.STAY_CLEAN if clean else State.STAY_DIRTY
                if move is not None and at >= move.out:
                    if at > move.back:
                        state = State.STAY_CLEAN
                    elif at == move.back:
                        state = State.SWAP_IN
                    else:
                        copying = move.copies and at == move.out
                        state = State.SWAP_OUT if copying else State.OUT
                dead = at % count in self._dead[tensor]
                found[at % count] = State.STAY_DIRTY if dead else state
            if move is not None and writer is not None:
                copied.add(writer)
        return found
