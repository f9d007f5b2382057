"""Random programs: memory of all kinds, used by all kinds of work on several streams and threads, in steps that repeat or nearly do.

An operation names what it works on (`p0`, `t3`) and carries random bits; what exactly it does is up to proof_lowering, which leaves out
what makes no sense where it stands. So any operation may be dropped, and what is left is a program again: failing ones are made
shorter like that.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from proof_order import BLOCKING, LEGACY, NON_BLOCKING, PER_THREAD

GRANULES = 32  # of 64 KiB, a UM block
MOST_GRANULES = 6 * GRANULES
KINDS = ("fill", "update", "combine", "reduce", "gather", "sparse")
FLAVOURS = ("streams", "graphs", "devices")  # one GPU; one, with graphs that are replayed; two
PLACES = (0, 8, 32768, 65528)  # of the cell in its granule


@dataclass(frozen=True, slots=True)
class Operation:
    """verb: new, free, kernel, copy, set, look, cpu, hint, sync, empty, graph, replay, parallel."""

    verb: str
    names: tuple[str, ...] = ()
    stream: int = 0
    bits: int = 0  # random; what is left open is decided by them
    thread: int = 0
    kind: str = ""  # of memory, of a kernel
    granules: int = 0
    body: tuple[Operation, ...] = ()  # of a graph, of a parallel stretch

    def pick(self, place: int, count: int) -> int:
        """A random number below count; another for each place."""
        return (self.bits * (2 * place + 1) * 0x9E3779B97F4A7C15 >> 24 & 0xFFFFFF) % count

    def __str__(self) -> str:
        words = [self.verb, self.kind, *self.names, f"on {self.stream}" if self.verb not in ("new", "free", "cpu", "empty") else ""]
        words += [f"{self.granules} granules" if self.granules else "", f"thread {self.thread}" if self.thread else ""]
        return " ".join(filter(None, words)) + (f" [{'; '.join(map(str, self.body))}]" if self.body else "")


@dataclass(frozen=True)
class Program:
    """Streams of (device, kind); operations; `resets`: its contexts end with it."""

    seed: int
    streams: tuple[tuple[int, int], ...]
    place: int
    threads: int
    resets: bool
    operations: list[Operation] = field(repr=False)

    @property
    def devices(self) -> int:
        """GPUs that it uses."""
        return 1 + max(device for device, _ in self.streams)


class _Generator:
    def __init__(self, seed: int, flavour: str) -> None:
        self.random = random.Random(seed)
        self.graphs = flavour == "graphs"
        r = self.random
        devices = 2 if flavour == "devices" else 1
        kinds = [(0, BLOCKING)] + [(0, r.choice((BLOCKING, NON_BLOCKING, NON_BLOCKING))) for _ in range(r.randint(0, 2))]
        kinds += [(0, PER_THREAD)] * (r.random() < 0.15)
        kinds += [(1, r.choice((BLOCKING, NON_BLOCKING)))] * (devices - 1)
        self.kinds = (*kinds, *((device, LEGACY) for device in range(devices)))
        self.threads = r.choice((1, 1, 2, 3))
        self.torch = r.choice((0.3, 0.9, 0.97))  # how much memory is the caching allocator's
        self.sizes: dict[str, int] = {}
        self.devices: dict[str, int] = {}
        self.managed: list[str] = []
        self.host: list[str] = []
        self.main = r.randrange(len(kinds))  # most work is on one stream

    def stream(self, device: int) -> int:
        r = self.random
        if self.kinds[self.main][0] == device and r.random() < 0.6:
            return self.main
        of_device = [i for i, (d, kind) in enumerate(self.kinds) if d == device and (kind != LEGACY or r.random() < 0.1)]
        return r.choice(of_device or [next(i for i, (d, _) in enumerate(self.kinds) if d == device)])

    def op(self, verb: str, *names: str, device: int = 0, **more: object) -> Operation:
        r = self.random
        stream = more.pop("stream", None)
        made = Operation(verb, names, self.stream(device) if stream is None else int(str(stream)), r.getrandbits(48))
        return replace(made, **more)  # type: ignore[arg-type]

    def new(self, name: str) -> Operation:
        r = self.random
        kind = "torch" if r.random() < self.torch else r.choice(("mal", "mal", "asy", "man", "man", "pin", "hst"))
        if name not in self.sizes:
            self.devices[name] = r.randrange(max(device for device, _ in self.kinds) + 1)
            small = r.random() < 0.15
            self.sizes[name] = r.randint(1, 20) if small else r.randint(16, MOST_GRANULES)
        (self.managed if kind == "man" else self.host if kind in ("pin", "hst") else []).append(name)
        return self.op("new", name, device=self.devices[name], kind=kind, granules=self.sizes[name])

    def work(self, names: list[str]) -> Operation:
        """Something that uses memory."""
        r = self.random
        d, a, b = (r.choice(names) for _ in range(3))
        device = self.devices[d]
        roll = r.random()
        if roll < 0.72:
            return self.op("kernel", d, a, b, device=device, kind=r.choice(KINDS))
        if roll < 0.84:
            return self.op("copy", d, a, device=r.choice((device, self.devices[a])))
        if roll < 0.89:
            return self.op("set", d, device=device)
        if roll < 0.92:
            return self.op("look", d, device=device)
        if roll < 0.95 and self.managed + self.host:
            return self.op("cpu", r.choice(self.managed + self.host))
        if roll < 0.97 and self.managed:
            name = r.choice(self.managed)
            return self.op("hint", name, device=self.devices[name])
        return self.op("sync", device=device)

    def body(self, kept: list[str], temporary: list[str]) -> list[Operation]:
        """A step: temporaries come and go in the midst of the work."""
        r = self.random
        operations: list[Operation] = []
        alive: list[str] = []
        left = list(temporary)
        for _ in range(r.randint(8, 26)):
            if left and r.random() < 0.4:
                name = left.pop()
                operations += [self.new(name), self.op("kernel", name, name, name, device=self.devices[name], kind="fill")]
                alive.append(name)
            elif alive and r.random() < 0.3:
                name = alive.pop(r.randrange(len(alive)))
                operations.append(self.op("free", name))
                if r.random() < 0.4:  # and at once handed out again, before anything is launched, while other streams are busy
                    operations[-1:-1] = [self.op("kernel", *(r.choice(kept),) * 3, kind="update") for _ in range(2)]
                    operations += [self.new(name), self.op("kernel", name, name, name, device=self.devices[name], kind="fill")]
                    alive.append(name)
            else:
                operations.append(self.work(kept + 2 * alive))
        operations += [self.op("free", name) for name in alive]
        if r.random() < 0.1:
            operations.append(self.op("empty"))
        return operations

    def deviated(self, step: list[Operation], names: list[str]) -> Iterator[Operation]:
        """The step with some of it left out, changed or added."""
        r = self.random
        for operation in step:
            roll = r.random()
            if roll < 0.08:
                continue
            if roll < 0.16:
                yield self.work(names)
            yield replace(operation, bits=r.getrandbits(48)) if roll > 0.9 and operation.verb != "new" else operation

    def with_parallel(self, operations: list[Operation]) -> list[Operation]:
        """Threads: stretches of one thread each, and some in which all run at the same time."""
        r = self.random
        if self.threads == 1:
            return operations
        made: list[Operation] = []
        at = 0
        while at < len(operations):
            length = r.randint(3, 12)
            part = [replace(operation, thread=r.randrange(self.threads)) for operation in operations[at : at + length]]
            if r.random() < 0.35:
                made.append(Operation("parallel", bits=r.getrandbits(48), body=tuple(part)))
            else:
                made += [replace(operation, thread=part[0].thread) for operation in part]
            at += length
        return made

    def graph(self, name: str, names: list[str]) -> Operation:
        body = [self.work(names) for _ in range(self.random.randint(2, 6))]
        return self.op("graph", name, body=tuple(o for o in body if o.verb in ("kernel", "set", "copy")))

    def program(self, seed: int) -> Program:
        r = self.random
        kept = [f"p{i}" for i in range(r.randint(3, 9))]
        temporary = [f"t{i}" for i in range(r.randint(2, 8))]
        start = [
            made
            for name in kept
            for made in (
                self.new(name),
                self.op("set" if r.random() < 0.2 else "kernel", name, name, name, device=self.devices[name], kind="fill"),
            )
        ]
        step = self.body(kept, temporary)
        deviates = seed % 2 == 1
        operations = list(start)
        names = [name for name in kept + temporary if name in self.sizes]
        graphs = [f"g{i}" for i in range(r.randint(1, 2))] if self.graphs else []
        first_graph = r.randint(0, 2)
        for i in range(r.randint(3, 6)):
            if i == first_graph:
                operations += [self.graph(name, kept) for name in graphs]
            operations += self.deviated(step, names) if deviates and i > 0 else step
            if i >= first_graph:
                operations += [self.op("replay", name, stream=self.stream(0)) for name in graphs for _ in range(r.randint(0, 2))]
            if r.random() < 0.3:
                operations.append(self.op("sync"))
        place = r.choice(PLACES)
        return Program(seed, self.kinds, place, self.threads, r.random() < 0.25, self.with_parallel(operations))


def random_program(seed: int, flavour: str = "streams") -> Program:
    """The program of a seed; odd ones deviate from their step each time. flavour: one of FLAVOURS."""
    return _Generator(seed, flavour).program(seed)
