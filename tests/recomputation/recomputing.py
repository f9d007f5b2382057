"""Programs made by hand and at random: PyTorch's blocks, and launches on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from deepum.recomputation.reading import items
from deepum.recomputation.rewriting import Chooser, Rewriting
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


def rewritten(made: Trace, ns: dict[int, int], chooser: Chooser) -> tuple[Trace, Rewriting]:
    """The program under that chooser."""
    program = Rewriting(chooser)
    chunks = list(program.run(items(made, ns)))
    return Trace("made", b"".join(c[0] for c in chunks), b"".join(c[1] for c in chunks)), program


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


def random_chooser(seed: int) -> Chooser:
    """Drops what it likes when it likes."""
    random = Random(seed)

    class Any:
        def room(self, program: Rewriting, size: int) -> None:
            self._drop(program)

        def used(self, program: Rewriting, operation: object) -> None:
            self._drop(program)

        def step(self, program: Rewriting, number: int) -> None:
            pass

        def end(self, program: Rewriting, number: int) -> None:
            pass

        def _drop(self, program: Rewriting) -> None:
            for storage, held in list(program.held.items()):
                if held.block is not None and held.version > 0 and random.random() < 0.25:
                    program.drop(storage)

    return Any()
