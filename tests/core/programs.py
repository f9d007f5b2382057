"""Made-up programs for the decision core: random ones, and a training loop with the shape of a real
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from deepum._core import lib
from hypothesis import strategies as st

from deepum.core import UM_BLOCK_BYTES, BlockRange, EventWriter


@dataclass(frozen=True)
class Launch:
    """One launch of a loop."""

    execution: int
    ranges: tuple[BlockRange, ...]
    stream: int = 0


def sweep(blocks: int, launches: int, slot: int = 0) -> list[Launch]:
    """A step that goes over an allocation in equal parts, one launch each."""
    part = blocks // launches
    return [
        Launch(1000 * (slot + 1) + i, (BlockRange(slot, i * part, part),)) for i in range(launches)
    ]


def there_and_back(blocks: int, launches: int) -> list[Launch]:
    """Forward and backward over an allocation."""
    forward = sweep(blocks, launches)
    return forward + [Launch(launch.execution + 500, launch.ranges) for launch in reversed(forward)]


def kernels(names: str) -> list[Launch]:
    """A launch a letter, each with a block of its own."""
    return [Launch(ord(name), (BlockRange(0, ord(name) % 64, 1),)) for name in names]


def write(writer: EventWriter, launches: Sequence[Launch]) -> bytes:
    """The launches' records."""
    for launch in launches:
        writer.execute(launch.execution, launch.ranges, launch.stream)
    return writer.take()


def caching_step(writer: EventWriter, places: Sequence[int], blocks: int = 4) -> None:
    """A step whose tensors, of `blocks` UM blocks each, lie where PyTorch's allocator happens to
    put them in slot 0: a tensor a launch, all alive until the last has been used. The program's own
    hash of a launch does not tell the places.
    """
    size = blocks * UM_BLOCK_BYTES
    for i, place in enumerate(places):
        writer.block(True, 0, place * size, size, (i + 1) * size)
        writer.execute(7000 + i, [BlockRange(0, place * blocks, blocks)])
    for i, place in enumerate(places):
        writer.execute(8000 + i, [BlockRange(0, place * blocks, blocks)])
    for i, place in enumerate(places):
        writer.block(False, 0, place * size, size, (len(places) - i - 1) * size)


def long_steps(
    writer: EventWriter, rng: Random, capacity: int, steps: int, vary: bool = False
) -> None:
    """Steps of some 80 launches over twice what the card has, so that blocks are used, rest and are
    needed again at all distances: weights are slot 0; tensors of slot 1 are handed out, used a few
    times and taken back. From step to step a few launches are left out, come once more or in other
    places. Tensors that vary are up to two UM blocks shorter, each time by others.
    """
    part, tensors = capacity // 32, 16
    size = part * UM_BLOCK_BYTES
    writer.device(capacity)
    writer.allocate(0, capacity + capacity // 2)
    writer.allocate(1, part * tensors)
    weights = [BlockRange(0, at, rng.randint(1, part)) for at in range(0, capacity, part)]
    launches = [(number, rng.sample(weights, rng.randint(1, 2))) for number in range(80)]
    lives = [sorted(rng.sample(range(80), 2)) for _ in range(tensors)]
    sizes = [size] * tensors
    allocated = 0
    for _ in range(steps):
        if vary:
            sizes = [size - rng.randrange(3) * UM_BLOCK_BYTES for _ in range(tensors)]
        for place, (number, ranges) in enumerate(launches):
            for tensor, (begin, end) in enumerate(lives):
                if place in (begin, end):
                    allocated += sizes[tensor] if place == begin else -sizes[tensor]
                    writer.block(place == begin, 1, tensor * size, sizes[tensor], allocated)
            alive = [
                BlockRange(1, tensor * part, part)
                for tensor, (begin, end) in enumerate(lives)
                if begin <= place < end
            ]
            chosen = [one for one in alive if one.first // part % 5 == number % 5]
            for _ in range(rng.choices((1, 0, 2), (30, 1, 1))[0]):
                writer.execute(
                    number if rng.random() < 0.98 else rng.randrange(100),
                    [*ranges, *chosen],
                    rng.choice((0, 0, 0, 1)),
                )
        if rng.random() < 0.5:
            writer.synchronise()


SLOTS = 4
SPARSE = lib.DEEPUM_EXECUTE_SPARSE
SIZES = (6, 9, 14, 3)  # UM blocks of the allocation that a slot gets


@st.composite
def _range(draw: st.DrawFn, hostile: bool) -> BlockRange:
    slot = draw(st.integers(0, SLOTS if hostile else SLOTS - 1))
    first = draw(st.integers(0, 16 if hostile else SIZES[slot] - 1))
    return BlockRange(
        slot, first, draw(st.integers(0 if hostile else 1, 16 if hostile else SIZES[slot] - first))
    )


SMALL_HAPPENINGS = (
    st.tuples(st.just("fault"), _range(True), st.integers(0, 7)),
    st.tuples(st.just("progress"), st.integers(0, 70), st.integers(0, 60), st.integers(-60, 5)),
    st.tuples(st.just("prefetch"), _range(True), st.sampled_from((-1, 0, 1))),
    st.tuples(st.just("moved"), st.integers(0, 300), st.integers(0, 4)),
    st.tuples(
        st.just("free memory"),
        st.integers(0, 40),
        st.integers(0, 60),
        st.integers(-20, 5),
        st.integers(0, 3),
        st.integers(0, 1),
    ),
    st.tuples(
        st.just("block"),
        st.booleans(),
        st.integers(0, SLOTS - 1),
        st.integers(0, 13),
        st.integers(1, 9),
    ),
)
HAPPENINGS = (
    *SMALL_HAPPENINGS,
    st.tuples(st.just("allocate"), st.integers(0, SLOTS - 1)),
    st.tuples(st.just("free"), st.integers(0, SLOTS - 1)),
    st.tuples(st.just("capacity"), st.integers(0, 40), st.integers(0, 1)),
    st.tuples(
        st.just("advise"), _range(False), st.sampled_from((-1, 0)), st.sampled_from((1, 3, 4))
    ),
    st.tuples(st.just("lost"), st.booleans()),
    st.tuples(
        st.just("budget"), st.one_of(st.just(0), st.integers(1, 40)), st.sampled_from((0, 1, 15))
    ),
    st.tuples(st.just("degree"), st.sampled_from((0, 1, 3, 2000, 1 << 20, (1 << 20) + 1))),
    st.tuples(st.just("policy"), st.integers(0, 2)),
)


@st.composite
def event_programs(draw: st.DrawFn, steady: bool = False) -> list[Any]:
    """A random program: a step of random launches and looks for faults, repeated with variations,
    and everything else that can happen between. Where it is steady memory is short, and little
    happens but what is learned from.
    """
    rng = draw(st.randoms(use_true_random=False))
    gathers = 0.05 if steady else 0.3

    def ranges() -> tuple[BlockRange, ...]:
        return tuple(
            BlockRange(slot, first, rng.randint(1, min(6, SIZES[slot] - first)))
            for slot in rng.choices(range(SLOTS), k=rng.randint(0, 3))
            for first in [rng.randrange(SIZES[slot])]
        )

    def launch(number: int) -> tuple[Any, ...]:
        # Written and read, the rest is not known.
        uses = rng.choice(((0, 0), (0, 0), (1, 0), (0, 1), (1, 1)))
        flags = SPARSE if rng.random() < gathers else 0
        return ("launch", number, *uses, ranges(), rng.choice((0, 0, 0, 1, 2)), flags)

    def look() -> tuple[Any, ...]:
        return (
            "look",
            rng.choice((0, 1, 4, 20)),
            ranges() if rng.random() < (0.1 if steady else 0.3) else (),
        )

    launches = [launch(number) for number in range(rng.randint(2, rng.choice((12, 12, 30))))]
    if rng.random() < 0.4:  # by its arguments alone another
        _, _, written, read, ranges_of_first, *rest = launches[0]
        launches.append(
            (
                "launch",
                0,
                written,
                read,
                rng.choice((ranges(), (*ranges_of_first[:1], *ranges_of_first))),
                *rest,
            )
        )
    step = rng.choices(launches, k=rng.randint(3, 16 if len(launches) < 14 else 28))
    looks = rng.choice((0.1, 0.4) if steady else (0.0, 0.1, 0.4))
    step = [
        one for entry in step for one in ((entry, look()) if rng.random() < looks else (entry,))
    ]
    for _ in range(rng.choice((0, 0, 1, 3))):  # a tensor
        slot = rng.randrange(SLOTS)
        at, (begin, end) = (
            rng.randrange(SIZES[slot]),
            sorted(rng.choices(range(len(step) + 1), k=2)),
        )
        step.insert(end, ("block", False, slot, 2 * at, 0))
        step.insert(begin, ("block", True, slot, 2 * at, 2 * rng.randint(1, SIZES[slot] - at)))
    devices = [0] * SLOTS if rng.random() < 0.6 else rng.choices((0, 1), k=SLOTS)
    offsets = (
        [0] * SLOTS
        if rng.random() < 0.6
        else [512 * rng.randrange(UM_BLOCK_BYTES // 512) for _ in range(SLOTS)]
    )
    program: list[Any] = [("layout", devices, offsets)]
    for device in range(1 + max(devices)):
        program.append(("capacity", rng.randint(8, 24) if steady else rng.randint(4, 30), device))
    program += [("allocate", slot) for slot in range(SLOTS)]
    for happening in draw(
        st.lists(st.one_of(SMALL_HAPPENINGS if steady else HAPPENINGS), max_size=8)
    ):
        program.append(("loop", step, rng.randint(3, 9) if steady else rng.randint(1, 6)))
        program.append(happening)
        if rng.random() < 0.3:
            program.append(("loop", rng.choices(launches, k=rng.randint(1, 5)), 1))
    return [*program, ("loop", step, 4)]


class ProgramWriter:
    """Writes random programs. PyTorch's blocks never overlap, as in its allocator."""

    def __init__(self, writer: EventWriter) -> None:
        self.writer = writer
        self.generations = [0] * SLOTS
        # Places and sizes, in halves of a UM block.
        self.active: list[dict[int, int]] = [{} for _ in range(SLOTS)]
        self.passed = 0  # microseconds
        self.devices = [0] * SLOTS
        self.offsets = [0] * SLOTS  # of the slots' first bytes in their first UM blocks

    def clock(self, behind: int) -> int:
        """The time of a look: later than that of the look before, by how much has no rhyme nor
        reason.
        """
        self.passed += 1 + self.writer.sequence * 2654435761 % 4093
        return max(0, self.passed - behind)

    def write(self, program: list[Any]) -> None:
        writer = self.writer
        for happening in program:
            match happening:
                case ("loop", step, times):
                    for _ in range(times):
                        self.write(step)
                case ("launch", execution, written, read, ranges, stream, flags):
                    known = written + read
                    device = self.devices[execution % SLOTS]
                    writer.execute(
                        execution,
                        ranges[known:],
                        stream,
                        ranges[:written],
                        ranges[written:known],
                        device,
                        flags,
                    )
                # How far the streams are, and what was seen to be written.
                case ("look", behind, ranges):
                    reached = writer.sequence
                    for stream in range(3):
                        writer.progress(
                            stream, max(0, reached - behind), reached, self.clock(behind)
                        )
                    for where in ranges:
                        writer.fault(where, access=lib.DEEPUM_FAULT_WRITE)
                case ("allocate", slot):
                    self.generations[slot] += 1
                    self.allocate(slot)
                case ("free", slot):
                    self.active[slot].clear()
                    writer.free(slot, self.generations[slot])
                case ("layout", devices, offsets):
                    self.devices, self.offsets = devices, offsets
                case ("capacity", blocks, device):
                    writer.device(blocks, device)
                case ("progress", stream, behind, ahead):
                    at = self.clock(behind) if ahead > -50 else 0
                    writer.progress(
                        stream,
                        max(0, writer.sequence - behind),
                        max(0, writer.sequence + ahead),
                        at,
                    )
                case ("free memory", blocks, behind, ahead, reserve, device):
                    at = writer.sequence
                    writer.free_memory(
                        blocks, max(0, at - behind), max(0, at + ahead), reserve, device
                    )
                case ("budget", blocks, device):
                    writer.setting(lib.DEEPUM_SETTING_BUDGET, blocks * UM_BLOCK_BYTES, device)
                case ("degree", launches):
                    writer.setting(lib.DEEPUM_SETTING_PREFETCH_DEGREE, launches)
                case ("policy", policy):
                    writer.setting(lib.DEEPUM_SETTING_POLICY, policy)
                case ("fault", where, access):
                    writer.fault(where, access=access)
                case ("prefetch", where, location):
                    writer.program_prefetch(where, location)
                case ("advise", where, location, advice):
                    writer.program_advise(where, location, advice)
                case ("moved", command, status):
                    writer.moved(command, status)
                case ("lost", announced):
                    writer.lost(1)
                    for slot in range(SLOTS if announced else 0):
                        self.allocate(slot)
                case ("block", on, slot, at, size):
                    self.block(on, slot, at, size)

    def allocate(self, slot: int) -> None:
        self.active[slot].clear()
        where = {"device": self.devices[slot], "first_offset": self.offsets[slot]}
        self.writer.allocate(slot, SIZES[slot], generation=self.generations[slot], **where)

    def block(self, on: bool, slot: int, at: int, size: int) -> None:
        active, half = self.active[slot], UM_BLOCK_BYTES // 2
        if on and any(at < other + active[other] and other < at + size for other in active):
            return
        if not on and at not in active:
            return
        size = size if on else active.pop(at)
        if on and (at + size) * half <= SIZES[slot] * UM_BLOCK_BYTES - self.offsets[slot]:
            active[at] = size
        same = (
            self.active[other]
            for other in range(SLOTS)
            if self.devices[other] == self.devices[slot]
        )
        allocated = sum(sum(sizes.values()) for sizes in same) * half
        self.writer.block(
            on, slot, at * half, size * half, allocated, generation=self.generations[slot]
        )


def write_program(program: list[Any], writer: EventWriter) -> bytes:
    """The records of a random program."""
    ProgramWriter(writer).write(program)
    return writer.take()
