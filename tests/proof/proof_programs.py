"""Random programs: memory of all kinds, used by all kinds of work on several streams and threads,
in steps that repeat or nearly do.

An operation names what it works on (`p0`, `t3`) and carries random bits; what exactly it does is up
to proof_lowering, which leaves out what makes no sense where it stands. So any operation may be
dropped, and what is left is a program again: failing ones are made shorter like that.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from proof_order import BLOCKING, LEGACY, NON_BLOCKING, PER_THREAD

GRANULES = 32  # of 64 KiB, a UM block
MOST_GRANULES = 6 * GRANULES
KINDS = ("fill", "update", "combine", "reduce", "gather", "sparse")
# One GPU; one, with graphs that are replayed; two; streams that end and come again; graphs that are
# captured and never launched, memory handed out meanwhile; PyTorch's memory is managed memory of
# the program's own, which the CPU writes too; blocks that nobody reports; one thread takes memory
# while another's launches drop it; several contexts, of which some end and come again; more streams
# than have an id of their own; streams that wait for values instead of events.
FLAVOURS = (
    "streams",
    "graphs",
    "devices",
    "renewed",
    "captures",
    "managed",
    "silent",
    "threads",
    "contexts",
    "crowd",
    "values",
)
GPUS = 2  # devices 2 and 3 are further contexts of GPU 0 and 1
PLACES = (0, 8, 32768, 65528)  # of the cell in its granule


@dataclass(frozen=True, slots=True)
class Operation:
    """verb: new, free, kernel, copy, set, look, cpu, hint, sync, empty, renew, context, fork, nap,
    graph, replay, parallel.
    """

    verb: str
    names: tuple[str, ...] = ()
    stream: int = 0
    bits: int = 0  # random; what is left open is decided by them
    thread: int = 0
    kind: str = ""  # of memory, of a kernel
    granules: int = 0
    heavy: bool = False  # a kernel that takes long
    hidden: bool = False  # its addresses are no arguments that anybody could tell
    body: tuple[Operation, ...] = ()  # of a graph, of a parallel stretch

    def pick(self, place: int, count: int) -> int:
        """A random number below count; another for each place."""
        return (self.bits * (2 * place + 1) * 0x9E3779B97F4A7C15 >> 24 & 0xFFFFFF) % count

    def __str__(self) -> str:
        words = [
            self.verb,
            self.kind,
            *self.names,
            f"on {self.stream}" if self.verb not in ("new", "free", "cpu", "empty") else "",
        ]
        words += [
            f"{self.granules} granules" if self.granules else "",
            f"thread {self.thread}" if self.thread else "",
        ]
        return " ".join(filter(None, words)) + (
            f" [{'; '.join(map(str, self.body))}]" if self.body else ""
        )


@dataclass(frozen=True)
class Program:
    """Streams of (device, kind); operations; `resets`: its contexts end with it; `back`: its
    allocator hands out blocks' ends.

    A device is a context: of GPU 0 and 1 the primary ones, then another one of each.
    """

    seed: int
    streams: tuple[tuple[int, int], ...]
    place: int
    threads: int
    resets: bool
    flavour: str
    back: bool
    operations: list[Operation] = field(repr=False)

    @property
    def devices(self) -> int:
        """One more than the last context that it uses."""
        return 1 + max(device for device, _ in self.streams)


class _Generator:
    def __init__(self, seed: int, flavour: str) -> None:
        self.random = random.Random(seed)
        self.flavour = flavour
        self.graphs = flavour == "graphs"
        r = self.random
        devices = {"devices": (0, 1), "contexts": r.choice(((0, 2), (0, 2, 1), (0, 2, 1, 3)))}.get(
            flavour, (0,)
        )
        if flavour in ("threads", "graphs") and r.random() < 0.2:
            devices = (0, 1)
        more = {
            "streams": r.randint(0, 2),
            "devices": r.randint(0, 2),
            "crowd": r.randint(68, 90),
        }.get(flavour, 2)
        kinds = [(0, BLOCKING)] + [
            (0, r.choice((BLOCKING, NON_BLOCKING, NON_BLOCKING))) for _ in range(more)
        ]
        if flavour == "threads":
            kinds = [(0, NON_BLOCKING)] * r.randint(2, 3)
        kinds += [(0, PER_THREAD)] * (flavour not in ("threads", "crowd") and r.random() < 0.15)
        more_kinds = (NON_BLOCKING,) if flavour == "threads" else (BLOCKING, NON_BLOCKING)
        kinds += [(device, r.choice(more_kinds)) for device in devices[1:] for _ in range(2)]
        self.kinds = (*kinds, *((device, LEGACY) for device in devices))
        self.used = devices
        self.threads = r.choice((2, 3) if flavour == "threads" else (1, 1, 2, 3))
        # How much memory is the caching allocator's.
        self.torch = r.choice((0.3, 0.9, 0.97) if flavour == "streams" else (0.9, 0.97, 1))
        self.homes: dict[str, int] = {}
        self.captured = 0
        self.sizes: dict[str, int] = {}
        self.devices: dict[str, int] = {}
        self.managed: list[str] = []
        self.host: list[str] = []
        # Most work is on one stream.
        self.main = (
            r.randrange(len(kinds)) if flavour != "crowd" else len(kinds) - 1 - r.randrange(6)
        )
        self.legacy = r.choice((0.1, 0.1, 1))  # how often a default stream is as good as any other
        self.hidden = r.choice(
            (0, 0, 0.05) if flavour == "graphs" else (0, 0.05, 0.5)
        )  # how many kernels have addresses that nobody but they can read

    def stream(self, device: int) -> int:
        r = self.random
        if self.kinds[self.main][0] == device and r.random() < 0.6:
            return self.main
        of_device = [
            i
            for i, (d, kind) in enumerate(self.kinds)
            if d == device and (kind != LEGACY or r.random() < self.legacy)
        ]
        if self.flavour == "crowd" and r.random() < 0.7:
            of_device = of_device[-12:]
        return r.choice(
            of_device or [next(i for i, (d, _) in enumerate(self.kinds) if d == device)]
        )

    def op(self, verb: str, *names: str, device: int = 0, **more: object) -> Operation:
        r = self.random
        stream = more.pop("stream", None)
        made = Operation(
            verb,
            names,
            self.stream(device) if stream is None else int(str(stream)),
            r.getrandbits(48),
        )
        if verb == "kernel":
            made = replace(made, hidden=r.random() < self.hidden)
        return replace(made, **more)  # type: ignore[arg-type]

    def new(self, name: str) -> Operation:
        r = self.random
        kind = (
            "torch"
            if r.random() < self.torch
            else r.choice(("mal", "mal", "asy", "man", "man", "pin", "hst"))
        )
        if name not in self.sizes:
            self.devices[name] = r.choice(self.used)
            small = r.random() < 0.15
            least = 96 if self.flavour in ("graphs", "devices", "contexts") else 16
            self.sizes[name] = r.randint(1, 20) if small else r.randint(least, MOST_GRANULES)
        (self.managed if kind == "man" else self.host if kind in ("pin", "hst") else []).append(
            name
        )
        stream = self.homes.get(name) if r.random() < 0.7 else None
        # Default streams, which have the same handle in every context.
        if stream is None and len(self.used) > 1 and r.random() < 0.3:
            stream = self.kinds.index((self.devices[name], LEGACY))
        made = self.op(
            "new",
            name,
            device=self.devices[name],
            kind=kind,
            granules=self.sizes[name],
            stream=stream,
        )
        self.homes[name] = made.stream
        return made

    def apart(self, device: int, home: int) -> int:
        """A stream that has nothing to do with that one, if there is one."""
        ruled_out = (PER_THREAD,) if self.legacy == 1 else (LEGACY, PER_THREAD)
        others = [
            i
            for i, (d, kind) in enumerate(self.kinds)
            if d == device and kind not in ruled_out and i != home
        ]
        others = others[-12:] if self.flavour == "crowd" else others
        return self.random.choice(others or [self.stream(device)])

    def reuse(self, names: list[str], kept: list[str]) -> list[Operation]:
        """Given back while a stream is busy, dropped for want of space, and handed out again before
        the GPU has dropped it.
        """
        r = self.random
        name = names[0]
        device, home = self.devices[name], self.homes[name]
        busy, aside = self.apart(device, home), self.apart(device, home)
        first = next((other for other in kept if self.devices[other] == device), kept[0])
        others = [other for other in kept if other != first]
        made = [
            self.op("kernel", first, first, first, kind="update", stream=busy, heavy=True)
            for _ in range(r.randint(1, 4))
        ]
        ends = self.flavour in ("renewed", "devices") and r.random() < 0.5
        if ends:  # the stream ends while it still reads
            made.append(
                self.op("kernel", first, name, name, kind="gather", stream=home, heavy=True)
            )
            made.append(self.op("renew", stream=home))
        made += [self.op("free", each) for each in names]
        for _ in range(r.randint(1, 5) * len({self.devices[each] for each in names})):
            d, a = r.choice(others), r.choice(others)
            stream = (
                aside
                if r.random() < 0.8 and self.devices[d] == device
                else self.stream(self.devices[d])
            )
            made.append(self.op("kernel", d, a, a, stream=stream, kind=r.choice(KINDS)))
        # Some other context ends meanwhile.
        if self.flavour in ("contexts", "devices") and r.random() < 0.6:
            gone = r.choice(self.used)
            made.append(self.op("context", device=gone, kind=r.choice(("short", "end"))))
            for each in [each for each in kept if gone >= GPUS and self.devices[each] == gone]:
                made += [
                    self.new(each),
                    self.op("kernel", each, each, each, device=gone, kind="fill"),
                ]
        if self.flavour == "renewed" and not ends and r.random() < 0.8:
            made.append(self.op("renew", stream=home))
        if r.random() < 0.03:
            made.append(self.op("fork"))
        if self.flavour in ("devices", "contexts", "crowd"):
            made.append(self.op("nap"))
        for each in r.sample(names, len(names)):
            again = self.new(each)
            fill = self.op(
                "kernel",
                each,
                each,
                each,
                device=self.devices[each],
                kind="fill",
                stream=again.stream,
            )
            if self.flavour == "captures" and r.random() < 0.8:
                made.append(self.capture(each, kept, again))
            else:
                made.append(again)
            if self.flavour == "managed" and r.random() < 0.7:
                fill = self.op("cpu", each)
            elif r.random() < (
                0.5 if self.flavour == "renewed" else 0.2
            ):  # a stream's first work may be a memset, or a copy from the host
                fill = self.op("set", each, device=self.devices[each], stream=again.stream)
            made.append(fill)
        return [
            *made,
            *(
                self.op(
                    "kernel", r.choice(others), each, each, device=self.devices[each], kind="gather"
                )
                for each in names
            ),
        ]

    def across(self, late: str, early: str, kept: list[str]) -> list[Operation]:
        """On two devices: what died early on the one can be dropped long before what died behind a
        busy stream of the other, but is dropped by a later command. The early one is handed out
        again first.
        """
        r = self.random
        busy = {name: self.apart(self.devices[name], self.homes[name]) for name in (late, early)}
        mine = {
            name: [other for other in kept if self.devices[other] == self.devices[name]]
            for name in (late, early)
        }
        if not all(mine.values()):
            return []
        made = [self.op("free", early)]
        first = mine[late][0]
        made += [
            self.op("kernel", first, first, first, kind="update", stream=busy[late], heavy=True)
            for _ in range(r.randint(3, 12))
        ]
        made.append(self.op("free", late))
        for name in (late, early):
            sweep = [other for other in mine[name] if other != first] * r.randint(1, 2)
            made += [
                self.op("kernel", other, other, other, kind="update", stream=busy[name])
                for other in sweep
            ]
        made.append(self.op("nap"))
        for name in (early, late):
            again = self.new(name)
            made += [
                again,
                self.op(
                    "kernel",
                    name,
                    name,
                    name,
                    device=self.devices[name],
                    kind="fill",
                    stream=again.stream,
                ),
            ]
        return [
            *made,
            *(
                self.op(
                    "kernel", mine[name][-1], name, name, device=self.devices[name], kind="gather"
                )
                for name in (late, early)
            ),
        ]

    def ordered(self, name: str, kept: list[str]) -> list[Operation]:
        """Memory in stream order: given back while its stream is busy, which then ends; the next
        stream takes as much at once.
        """
        r = self.random
        device = self.devices[name]
        home = r.choice(
            [
                i
                for i, (d, kind) in enumerate(self.kinds)
                if d == device and kind in (BLOCKING, NON_BLOCKING)
            ]
        )
        self.homes[name] = home
        taken = [
            self.op("new", name, device=device, kind="asy", granules=self.sizes[name], stream=home),
            self.op("kernel", name, name, name, device=device, kind="fill", stream=home),
        ]
        made = [self.op("free", name)]
        for _ in range(r.randint(1, 3)):
            made += [
                *taken,
                self.op(
                    "kernel",
                    name,
                    name,
                    name,
                    device=device,
                    kind="update",
                    stream=home,
                    heavy=True,
                ),
            ]
            made += [self.op("free", name, stream=home), self.op("renew", stream=home)]
        return [
            *made,
            *taken,
            self.op("kernel", r.choice(kept), name, name, device=device, kind="gather"),
        ]

    def race(self, names: list[str], kept: list[str]) -> list[Operation]:
        """Given back; then one thread launches, so that they are dropped, while another takes them
        again.
        """
        r = self.random
        device = self.devices[names[0]]
        home = self.homes[names[0]]
        busy = self.apart(device, home)
        names = [name for name in names if self.devices[name] == device]
        kept = [name for name in kept if self.devices[name] == device]
        if not kept:
            return []
        update = [self.op("kernel", name, name, name, kind="update", stream=busy) for name in kept]
        made = [
            *update,
            *(replace(update[0], heavy=True) for _ in range(r.randint(1, 4))),
            *(self.op("free", name) for name in names),
        ]
        race = [replace(r.choice(update), bits=r.getrandbits(48)) for _ in range(r.randint(3, 8))]
        for name in names:
            self.homes[name] = home
            taken = self.op("new", name, kind="torch", granules=self.sizes[name], stream=home)
            race += [
                replace(taken, thread=1),
                replace(self.op("kernel", name, name, name, kind="fill", stream=home), thread=1),
            ]
        made.append(Operation("parallel", kind="race", body=tuple(race)))
        return made + [
            self.op("kernel", r.choice(kept), name, name, kind="gather", device=device)
            for name in names
        ]

    def capture(self, name: str, kept: list[str], new: Operation) -> Operation:
        """A graph that is not launched; the memory is handed out while it is captured."""
        self.captured += 1
        graph = self.graph(f"g{self.captured}", kept)
        return replace(
            graph,
            names=(*graph.names, name),
            stream=new.stream,
            kind=new.kind,
            granules=new.granules,
        )

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
                operations += [
                    self.new(name),
                    self.op("kernel", name, name, name, device=self.devices[name], kind="fill"),
                ]
                alive.append(name)
            elif alive and self.flavour == "threads" and r.random() < 0.15:
                operations += self.race(r.sample(alive, min(len(alive), r.randint(1, 3))), kept)
            elif (
                len(self.used) > 1
                and len({self.devices[name] for name in alive}) > 1
                and r.random() < 0.2
            ):
                late = r.choice(alive)
                early = r.choice(
                    [name for name in alive if self.devices[name] != self.devices[late]]
                )
                operations += self.across(late, early, kept)
            elif alive and self.flavour == "renewed" and r.random() < 0.1:
                operations += self.ordered(r.choice(alive), kept)
            elif alive and len(kept) > 1 and r.random() < 0.2:
                operations += self.reuse(
                    r.sample(alive, min(len(alive), r.choice((1, 1, 2, 4)))), kept
                )
            elif alive and r.random() < 0.3:
                name = alive.pop(r.randrange(len(alive)))
                operations.append(self.op("free", name))
                # And at once handed out again, before anything is launched, while other streams are
                # busy.
                if r.random() < 0.4:
                    operations[-1:-1] = [
                        self.op("kernel", *(r.choice(kept),) * 3, kind="update") for _ in range(2)
                    ]
                    operations += [
                        self.new(name),
                        self.op("kernel", name, name, name, device=self.devices[name], kind="fill"),
                    ]
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
            yield (
                replace(operation, bits=r.getrandbits(48))
                if roll > 0.9 and operation.verb != "new"
                else operation
            )

    def with_parallel(self, operations: list[Operation]) -> list[Operation]:
        """Threads: stretches of one thread each, and some in which all run at the same time."""
        r = self.random
        if self.threads == 1:
            return operations
        made: list[Operation] = []
        at = 0
        while at < len(operations):
            length = r.randint(3, 12)
            if operations[at].verb == "parallel":
                made.append(operations[at])
                at += 1
                continue
            length = next(
                (
                    i
                    for i, operation in enumerate(operations[at : at + length])
                    if operation.verb == "parallel"
                ),
                length,
            )
            part = [
                replace(operation, thread=r.randrange(self.threads))
                for operation in operations[at : at + length]
            ]
            if r.random() < 0.35:
                made.append(Operation("parallel", bits=r.getrandbits(48), body=tuple(part)))
            else:
                made += [replace(operation, thread=part[0].thread) for operation in part]
            at += length
        return made

    def graph(self, name: str, names: list[str]) -> Operation:
        r = self.random
        body = [
            replace(o, heavy=r.random() < 0.3)
            for o in (self.work(names) for _ in range(r.randint(2, 6)))
        ]
        return self.op(
            "graph", name, body=tuple(o for o in body if o.verb in ("kernel", "set", "copy"))
        )

    def replays(self, graph: Operation, kept: list[str], made: bool) -> list[Operation]:
        """A graph and its launches, while a stream is busy and memory is short: what the graph
        keeps for itself looks like dead memory.
        """
        r = self.random
        launched = self.stream(0)
        busy, aside = self.apart(0, launched), self.apart(0, launched)
        first = next((name for name in kept if self.devices[name] == 0), kept[0])
        operations = [
            self.op("kernel", *(first,) * 3, kind="update", stream=busy, heavy=True)
            for _ in range(r.randint(1, 4))
        ]
        # What the graph keeps for itself was used just before, so that there is something to drop.
        if not made:
            before = self.op(
                "new",
                "w",
                kind="torch",
                granules=r.randint(96, MOST_GRANULES),
                stream=self.apart(0, busy),
            )
            fill = self.op("kernel", "w", "w", "w", kind="fill", stream=before.stream)
            operations += [
                before,
                fill,
                self.op("free", "w"),
                replace(graph, stream=before.stream, granules=before.granules),
            ]
        for _ in range(r.randint(1, 3)):
            sweep = r.sample(kept[3:], r.randint(1, len(kept) - 3))
            for name in sweep:  # on the other GPU, if there is one, memory is dropped as well
                stream = aside if self.devices[name] == 0 else self.stream(self.devices[name])
                operations.append(self.op("kernel", name, name, name, kind="update", stream=stream))
            operations += [
                self.op("replay", *graph.names, stream=launched) for _ in range(r.randint(1, 3))
            ]
        return operations

    def program(self, seed: int) -> Program:
        r = self.random
        least = {"graphs": 8, "devices": 8, "contexts": 9}.get(self.flavour, 3)
        kept = [f"p{i}" for i in range(r.randint(least, 11 if len(self.used) > 1 else 9))]
        temporary = [f"t{i}" for i in range(r.randint(2, 8))]
        start = [
            made
            for name in kept
            for made in (
                self.new(name),
                self.op(
                    "set" if r.random() < 0.2 else "kernel",
                    name,
                    name,
                    name,
                    device=self.devices[name],
                    kind="fill",
                ),
            )
        ]
        # Each stream gets its number from the shim when it is first used.
        if self.flavour == "crowd":
            start += [
                self.op("kernel", *(kept[0],) * 3, kind="update", stream=i)
                for i in range(len(self.kinds))
            ]
        step = self.body(kept, temporary)
        deviates = seed % 2 == 1
        operations = list(start)
        names = [name for name in kept + temporary if name in self.sizes]
        graphs = (
            [self.graph(f"g{i}", kept[1:3]) for i in range(r.randint(1, 2))] if self.graphs else []
        )
        first_graph = r.randint(1, 2)
        for i in range(r.randint(3, 5) if self.graphs else r.randint(2, 4)):
            operations += self.deviated(step, names) if deviates and i > 0 else step
            if i >= first_graph:
                operations += [
                    o for graph in graphs for o in self.replays(graph, kept, i > first_graph)
                ]
            if r.random() < 0.3:
                operations.append(self.op("sync"))
        place = r.choice(PLACES)
        # A thread's own stream cannot be made to wait by others: while there is one, nothing is
        # dropped.
        resets = r.random() < 0.25 or any(kind == PER_THREAD for _, kind in self.kinds)
        flavour = self.flavour
        return Program(
            seed,
            self.kinds,
            place,
            self.threads,
            resets,
            flavour,
            r.random() < 0.3,
            self.with_parallel(operations),
        )


def random_program(seed: int, flavour: str = "streams") -> Program:
    """The program of a seed; odd ones deviate from their step each time. flavour: one of
    FLAVOURS.
    """
    return _Generator(seed, flavour).program(seed)
