"""Programs made by hand and at random: PyTorch's blocks, and launches on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from deepum.recomputation.backend import TraceBackend
from deepum.recomputation.following import Following
from deepum.recomputation.reading import items
from deepum.recomputation.tape import Tape
from deepum.rematerialise.engine import Engine
from deepum.rematerialise.graph import Content
from deepum.rematerialise.heuristics import NEVER, Heuristic
from deepum.trace import Trace
from deepum.trace.allocator import Block
from deepum.trace.program import Program, hashed
from deepum.trace.work import READ, WRITE, Access

MIB = 1 << 20


@dataclass
class Made:
    """A program that grows; blocks by name. `ns`: of launches, by sequence."""

    program: Program = field(default_factory=Program)
    blocks: dict[str, Block] = field(default_factory=dict)
    ns: dict[int, int] = field(default_factory=dict)

    def new(self, name: str, mib: int = 4) -> None:
        """A block is handed out."""
        self.blocks[name] = self.program.allocate(mib * MIB)

    def free(self, name: str) -> None:
        """And given back."""
        self.program.free(self.blocks.pop(name))

    def access(self, name: str, flags: int, first: int = 0, mib: int | None = None) -> Access:
        """All of a block, or MiB of it."""
        block = self.blocks[name]
        size = block.bytes if mib is None else mib * MIB
        return Access(block.segment.slot, flags, block.offset + first * MIB, size)

    def launch(self, kernel: str, *accesses: Access, ns: int = 1_000_000) -> None:
        """A kernel of that name."""
        blocks = {(block.segment.slot, block.offset): block for block in self.blocks.values()}
        touched = []
        for access in accesses:
            at = max(o for s, o in blocks if s == access.slot and o <= access.offset)
            touched.append(blocks[access.slot, at].range)
        sequence = self.program.writer.launch(
            hashed(kernel), list(dict.fromkeys(touched)), list(accesses), float(ns)
        )
        self.ns[sequence] = ns

    def run(
        self, kernel: str, reads: str = "", writes: str = "", changes: str = "", ns: int = 10**6
    ) -> None:
        """A kernel on whole blocks, named by letters."""
        self.launch(
            kernel,
            *(self.access(name, READ) for name in reads),
            *(self.access(name, READ | WRITE) for name in changes),
            *(self.access(name, WRITE) for name in writes),
            ns=ns,
        )

    def end_step(self) -> None:
        """The last launch was the step's last."""
        self.program.writer.end_step()

    def trace(self) -> Trace:
        """All of it."""
        return self.program.trace("made")


class AtRandom(Heuristic):
    """A part of what may be evicted is, each time that anything is asked for."""

    name = "at random"
    uses_groups = True

    def __init__(self, seed: int, part: float) -> None:
        self._random, self._part = Random(seed), part

    def score(self, content: Content, staleness: float, free_beside: int) -> float:
        """Draws."""
        drawn = self._random.random()
        return drawn if drawn < self._part else NEVER


class Soft(Engine):
    """Evicts whatever it may, and goes on where there is nothing more."""

    def abandon(self, source: Content) -> None:
        """Goes as it would without."""
        self._gives_up(source)

    def _relieve(self, missing: int) -> bool:
        return False


class Keeping(Soft):
    """What the program let go of stays for what is computed from it, as under a hard budget."""

    def abandon(self, source: Content) -> None:
        """Nothing."""


class Followed:
    """A program that was followed by an engine that `make` makes. `trace`: of what was done."""

    def __init__(self, made: Made, make: Callable[[TraceBackend], Engine]) -> None:
        self.original = made.trace()
        self.tape = Tape()
        self.backend = TraceBackend(self.tape)
        self.engine = make(self.backend)
        following = Following(self.engine, self.backend, self.tape)
        self.trace = joined_up(following.run(items(self.original, made.ns)))

    @property
    def resident_bytes(self) -> int:
        """Of contents that the program has, or could need for others."""
        kept = [*self.backend.held.values(), *self.backend.abandoned()]
        return sum(one.bytes for one in kept if one.is_resident)


def at_random(
    seed: int, part: float, kind: type[Engine] = Soft
) -> Callable[[TraceBackend], Engine]:
    """Makes an engine that evicts at random whenever anything is asked for."""
    return lambda backend: kind(0, backend, AtRandom(seed, part), sampling=False)


def joined_up(chunks: Iterable[tuple[bytes, bytes]]) -> Trace:
    """The trace of steps."""
    steps = list(chunks)
    return Trace("", b"".join(one[0] for one in steps), b"".join(one[1] for one in steps))


def training(layers: int = 6, steps: int = 3, mib: int = 8, ns: int = 10**6) -> Made:
    """Forward through the layers, each an expensive launch and a cheap one behind it, and back;
    weights are changed at the end of a step.
    """
    made = Made()
    for layer in range(layers):
        made.new(f"w{layer}", 2)
        made.launch("initial", made.access(f"w{layer}", WRITE))
    for _ in range(steps):
        made.new("a0", mib)
        made.launch("batch", made.access("a0", WRITE))
        for layer in range(layers):
            made.new(f"p{layer}", mib)
            made.launch(
                f"product {layer}",
                made.access(f"a{layer}", READ),
                made.access(f"w{layer}", READ),
                made.access(f"p{layer}", WRITE),
                ns=ns,
            )
            made.new(f"a{layer + 1}", mib)
            made.launch(
                f"activation {layer}",
                made.access(f"p{layer}", READ),
                made.access(f"a{layer + 1}", WRITE),
                ns=ns // 20,
            )
        made.new("g", mib)
        made.launch("loss", made.access(f"a{layers}", READ), made.access("g", WRITE))
        for layer in reversed(range(layers)):
            made.launch(
                f"backward {layer}",
                made.access(f"a{layer}", READ),
                made.access(f"p{layer}", READ),
                made.access(f"w{layer}", READ | WRITE),
                made.access("g", READ | WRITE),
                ns=2 * ns,
            )
            made.free(f"p{layer}")
            made.free(f"a{layer + 1}")
        made.free("a0")
        made.free("g")
        made.end_step()
    return made


def random_program(seed: int) -> Made:
    """Launches that read, make, change in place, write in part and over; blocks that come and
    go.
    """
    random = Random(seed)
    made = Made()
    for number in range(3):
        made.new(f"lasting{number}", 2)
        made.launch("initial", made.access(f"lasting{number}", WRITE))
    count = 0
    for _ in range(3):
        written: list[str] = [f"lasting{number}" for number in range(3)]
        for _ in range(random.randrange(15, 40)):
            fresh = []
            for _ in range(random.randrange(0, 3)):
                count += 1
                fresh.append(f"b{count}")
                made.new(fresh[-1], random.randrange(2, 6))
            reads = random.sample(written, min(len(written), random.randrange(0, 3)))
            accesses = [made.access(name, READ) for name in reads]
            accesses += [made.access(name, WRITE) for name in fresh]
            rest = [name for name in written if name not in reads]
            if rest and random.random() < 0.3:
                name = random.choice(rest)
                accesses.append(
                    random.choice(
                        (
                            made.access(name, READ | WRITE),
                            made.access(name, WRITE),
                            made.access(name, WRITE, 1, 1),
                        )
                    )
                )
            written += fresh
            if accesses:
                made.launch(f"kernel {random.randrange(12)}", *accesses, ns=random.randrange(1, 99))
            for name in [n for n in written if n.startswith("b") and random.random() < 0.08]:
                written.remove(name)
                made.free(name)
        made.launch("last", *(made.access(name, READ) for name in written))
        for name in written:
            if name.startswith("b"):
                made.free(name)
        made.end_step()
    return made
