"""Schedules and programs that keep content until the program gives it up: what the second lower
bound is compared with.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from random import Random

from small import MIB

from deepum.core import BlockRange
from deepum.simulate.bound import Use, Work
from deepum.trace import Trace
from deepum.trace.allocator import Block
from deepum.trace.program import Program, exact
from deepum.trace.work import PERHAPS, READ, WRITE, WRITTEN_FIRST, Access

Keys = frozenset[Hashable]
NONE: Keys = frozenset()


@dataclass(frozen=True)
class State:
    """Before kernel `kernel`, or while it runs for `left` more ns. Content is on the device, on the
    host, or on both; `places` are taken on the device. `afar`: what the kernel uses over the link;
    of that it has still to read `reading`, to write `writing`.
    """

    kernel: int
    places: Keys
    device: Keys
    host: Keys
    running: bool = False
    left: int = 0
    afar: Keys = NONE
    reading: Keys = NONE
    writing: Keys = NONE


def _given_up(state: State, keys: Keys) -> State:
    return replace(state, device=state.device - keys, host=state.host - keys)


def _done(state: State, one: Work) -> State:
    """The same, or behind the kernel if that is all."""
    if not state.running or state.left or state.reading or state.writing:
        return state
    used = frozenset(use.key for use in one.uses)
    return replace(
        _given_up(state, frozenset(one.dies) & used),
        kernel=state.kernel + 1,
        running=False,
        afar=NONE,
    )


def _starts(state: State, one: Work, memory: int, duplicates: bool) -> Iterator[State]:
    """The ways in which the kernel can begin: each piece on the device or, if it is not there, over
    the link.
    """
    used = {use.key for use in one.uses}
    state = _given_up(
        state,
        frozenset(key for key in one.dies if key not in used)
        | {use.key for use in one.uses if use.fresh},
    )
    ways = [replace(state, running=True, left=int(one.ns))]
    for use in one.uses:
        found = []
        for way in ways:
            known = use.key in way.device or use.key in way.host
            # there, or without content: then it only needs a place.
            if use.key in way.device or not known:
                places = way.places | {use.key}
                here = replace(
                    way,
                    places=places,
                    device=way.device | {use.key},
                    host=way.host - {use.key} if use.writes else way.host,
                )
                found.append(here)
            if duplicates and use.key not in way.device:
                reading = frozenset({use.key}) if use.reads and known else NONE
                writing = frozenset({use.key}) if use.writes else NONE
                far = replace(way, host=way.host | {use.key}, afar=way.afar | {use.key})
                found.append(
                    replace(far, reading=way.reading | reading, writing=way.writing | writing)
                )
        ways = found
    return (_done(way, one) for way in ways if len(way.places) <= memory)


def _next(state: State, works: list[Work], duplicates: bool, memory: int) -> Iterator[State]:
    """After one more ns, in which each direction of the link may bring a piece over."""
    one = works[state.kernel]
    here = frozenset(use.key for use in one.uses) - state.afar if state.running else NONE
    changing = frozenset(use.key for use in one.uses if use.writes) & here
    into = [key for key in state.host - state.places - state.afar if len(state.places) < memory] + [
        None
    ]
    out = [*(state.device - state.host - (changing if duplicates else here)), None]
    for arrives in [*into, *(("read", key) for key in sorted(state.reading, key=str)[:1])]:
        for leaves in [*out, *(("write", key) for key in sorted(state.writing, key=str)[:1])]:
            new = replace(state, left=max(state.left - 1, 0))
            if isinstance(leaves, tuple):
                new = replace(new, writing=new.writing - {leaves[1]})
            elif leaves is not None:
                new = replace(new, host=new.host | {leaves})
                if not duplicates:
                    new = replace(new, device=new.device - {leaves}, places=new.places - {leaves})
            if isinstance(arrives, tuple):
                new = replace(new, reading=new.reading - {arrives[1]})
            elif arrives is not None:
                new = replace(new, places=new.places | {arrives}, device=new.device | {arrives})
                if not duplicates:
                    new = replace(new, host=new.host - {arrives})
            new = _done(new, one)
            if new != state:
                yield new


def best_kept_schedule(works: list[Work], memory: int, duplicates: bool = True) -> int:
    """The shortest time by trying everything: pieces of one byte, a link of one byte a ns each way,
    moves that begin at whole ns.

    Content changes sides over the link alone. Dropped is what the other side has, and what `dies`
    or `fresh` give up. With `duplicates` content may be on both sides, and a kernel may use what is
    on the host from there: a ns of the link for each piece read or written.
    """
    first: dict[str, Use] = {}
    for one in works:
        for use in one.uses:
            first.setdefault(str(use.key), use)
    tie = count()
    start = State(0, NONE, NONE, frozenset(key for key, use in first.items() if use.reads))
    queue = [(0, next(tie), start)]
    seen: set[State] = set()
    while queue:
        now, _, state = heapq.heappop(queue)
        if state.kernel == len(works):
            return now
        if state in seen:
            continue
        seen.add(state)
        used = frozenset(use.key for use in works[state.kernel].uses) if state.running else NONE
        for key in state.places - used:
            if key not in state.device or key in state.host:
                heapq.heappush(
                    queue,
                    (
                        now,
                        next(tie),
                        replace(state, places=state.places - {key}, device=state.device - {key}),
                    ),
                )
        if not state.running:
            ended = _given_up(
                state,
                frozenset(works[state.kernel].dies) - {use.key for use in works[state.kernel].uses},
            )
            if ended != state:  # given up already, while moves go on before the kernel begins
                heapq.heappush(queue, (now, next(tie), ended))
            for begun in _starts(state, works[state.kernel], memory, duplicates):
                heapq.heappush(queue, (now, next(tie), begun))
        for later in _next(state, works, duplicates, memory):
            heapq.heappush(queue, (now + 1, next(tie), later))
    raise AssertionError("no schedule")


class _Random(Program):
    """Steps that are alike: tensors are handed out, used and taken back at random, some long after
    their last use.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = Random(seed)
        self._plan: list[tuple[str, int, tuple[int, ...], tuple[int, ...]]] = []
        random = self._random
        sizes: dict[int, int] = {}
        live: list[int] = []
        most_ns = random.choice((20_000, 200_000, 2_000_000))
        self.tables = [random.randrange(1, 24 * MIB) for _ in range(random.randrange(1, 4))]
        for _ in range(random.randrange(12, 40)):
            if not live or random.random() < 0.35:
                sizes[len(sizes)] = random.choice(
                    (random.randrange(1 << 16, 4 * MIB), random.randrange(MIB, 24 * MIB))
                )
                live.append(len(sizes) - 1)
                self._plan.append(("allocate", sizes[live[-1]], (live[-1],), ()))
            everything = [*live, *(-1 - number for number in range(len(self.tables)))]
            touched = tuple(
                random.sample(everything, random.randrange(1, min(4, len(everything)) + 1))
            )
            flags = tuple(
                random.choice(
                    (READ, READ, WRITE, READ | WRITE, READ | WRITE | WRITTEN_FIRST, PERHAPS)
                )
                for _ in touched
            )
            kind = random.choice(
                ("launch",) * 6 + ("sparse", "small", "fill", "copy in", "copy out")
            )
            self._plan.append((kind, random.randrange(2_000, most_ns), touched, flags))
            if live and random.random() < 0.3:
                self._plan.append(("free", 0, (live.pop(random.randrange(len(live))),), ()))
        self._plan += [("free", 0, (tensor,), ()) for tensor in live]
        self._known = [self.allocate(size) for size in self.tables]
        for block, size in zip(self._known, self.tables, strict=True):
            self._launch("launch", 1000, [self._part(block, size, WRITE)], 1)

    def _part(
        self, block: Block, size: int, flags: int, part: tuple[float, float] = (0.0, 1.0)
    ) -> tuple[Access, BlockRange]:
        start, end = int(part[0] * size) // 256 * 256, max(int(part[1] * size), 1)
        start = min(start, end - 1)
        access = Access(block.segment.slot, flags, block.offset + start, end - start)
        return access, exact(access.slot, access.offset, access.bytes)

    def _launch(
        self, kind: str, ns: float, parts: list[tuple[Access, BlockRange]], name: int
    ) -> None:
        accesses, ranges = (
            [part[0] for part in parts],
            list(dict.fromkeys(part[1] for part in parts)),
        )
        if kind == "fill":
            self.writer.copy_inside(name, accesses[0]._replace(flags=WRITE), None, ranges[:1])
        elif kind in ("copy in", "copy out"):
            flags = WRITE if kind == "copy in" else READ
            self.writer.copy(name, accesses[0]._replace(flags=flags), ranges[0], kind == "copy in")
        else:
            self.writer.launch(name, ranges, accesses, float(ns), sparse=kind == "sparse")

    def step(self) -> None:
        """One, with its rows and parts drawn anew for sparse launches."""
        blocks: dict[int, tuple[Block, int]] = {
            -1 - i: (block, size)
            for i, (block, size) in enumerate(zip(self._known, self.tables, strict=True))
        }
        for number, (kind, size, tensors, flags) in enumerate(self._plan):
            if kind == "allocate":
                blocks[tensors[0]] = self.allocate(size), size
                continue
            if kind == "free":
                self.free(blocks.pop(tensors[0])[0])
                continue
            parts = []
            for tensor, flag in zip(tensors, flags, strict=True):
                block, length = blocks[tensor]
                if kind == "sparse" and tensor < 0:
                    rows = [self._random.random() for _ in range(4)]
                    parts += [
                        self._part(block, length, flag, (at, at + 512 / length))
                        for at in rows
                        if at * length + 512 < length
                    ]
                elif kind == "small":
                    parts.append(self._part(block, length, flag, (0.4, 0.4 + 900 / length)))
                else:
                    parts.append(
                        self._part(block, length, flag, (0.0, 1.0) if number % 3 else (0.25, 0.75))
                    )
            if parts:
                self._launch(kind, size, parts, 10 + number)
        self.writer.end_step()


def random_program(seed: int, steps: int = 8) -> Trace:
    """PyTorch's memory under random use: kernels that read, write and perhaps write all of a tensor
    or parts, rows of tables, memsets, copies; content that is not read again until its tensor is
    taken back, sooner or later.
    """
    program = _Random(seed)
    for _ in range(steps):
        program.step()
    return program.trace(f"random-{seed}")
