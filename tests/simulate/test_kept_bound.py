"""The lower bound of those who keep content until the program gives it up: never above the best
such schedule, nor above what any policy reaches; above the first bound by what only a clairvoyant
saves.
"""

from __future__ import annotations

from functools import cached_property
from random import Random

import pytest
from keeping import best_kept_schedule, random_program
from small import MIB

from deepum.core import BlockRange
from deepum.simulate import bound
from deepum.simulate.bound import Link, Use, Work
from deepum.simulate.comparison import compare
from deepum.simulate.needs import Steps, needs
from deepum.simulate.policies import BY_NAME, POLICIES
from deepum.simulate.replay import machine, replay
from deepum.simulate.steps import step_ends
from deepum.simulate.workload import Workload
from deepum.trace import Trace, TraceWriter, work
from deepum.trace.work import PERHAPS, READ, WRITE, Access

ARRAY = 64 * MIB
# Of programs that compute nothing twice.
MOVING = [policy for policy in POLICIES if not policy.recomputes]
MOVE_NS = ARRAY / 10.0  # at the link's 10 bytes a ns


def kernel(ns: float, reads: str = "", writes: str = "", dies: str = "", fresh: str = "") -> Work:
    """A kernel on pieces with names of one letter; one that is read and written is changed in
    place.
    """
    uses = tuple(
        Use(key, 1, key in reads, key in writes, key in fresh)
        for key in dict.fromkeys(reads + writes)
    )
    return Work(ns, uses, tuple(dies))


def kept(
    works: list[Work], memory: int, duplicates: bool = True, out_gbps: float = 1.0
) -> bound.Bound:
    return bound.bound(works, Link(memory, 1, out_gbps, duplicates, kept=True))


def random_works(random: Random, memory: int) -> list[Work]:
    """Of kernels that take no time half, so that it is the link's time that counts."""
    pieces = "abcde"[: random.randrange(memory + 1, 6)]
    works: list[Work] = []
    for _ in range(random.randrange(4, 10)):
        touched = random.sample(pieces, random.randrange(1, memory + 1))
        fresh = "".join(key for key in touched if random.random() < 0.15)
        reads = "".join(key for key in touched if key not in fresh and random.random() < 0.6)
        writes = "".join(key for key in touched if random.random() < 0.5)
        dies = "".join(key for key in pieces if random.random() < 0.1)
        uses = tuple(Use(key, 1, key in reads, key in writes, key in fresh) for key in touched)
        works.append(Work(random.choice((0, 0, 1, 2)), uses, tuple(dies)))
    return works


@pytest.mark.parametrize("duplicates", [True, False])
@pytest.mark.parametrize("seeds", [range(first, first + 30) for first in range(0, 60, 30)])
def test_it_is_at_or_below_the_best_schedule(seeds: range, duplicates: bool) -> None:
    above = 0
    for seed in seeds:
        random = Random(seed)
        memory = random.randrange(2, 4)
        works = random_works(random, memory)
        first, found = (
            bound.bound(works, Link(memory, 1, 1, duplicates)).ns,
            kept(works, memory, duplicates).ns,
        )
        assert first <= found <= best_kept_schedule(works, memory, duplicates)
        above += found > first
    assert above, "it says more than the first"


def test_what_nobody_reads_again_has_to_go_somewhere() -> None:
    """Four pieces are written, of which the card holds two, and given up at the end: two go out,
    read or not.
    """
    works = [*(kernel(1, "", key) for key in "abcd"), kernel(1, dies="abcd")]
    assert bound.bound(works, Link(2, 1, 0.1)).ns == 5
    assert kept(works, 2, out_gbps=0.1).ns == 20 + 1
    assert kept(works, 2).ns <= best_kept_schedule(works, 2)


def test_it_is_kept_until_it_ends_and_not_a_kernel_longer() -> None:
    """One piece after the other, on a card for one: given up before the next kernel begins, or
    overwritten by the driver.
    """
    given_up = [
        kernel(1, "", "a"),
        kernel(1, "", "b", dies="a"),
        kernel(1, "", "c", dies="b"),
        kernel(1, "", "d", dies="c"),
    ]
    overwritten = [kernel(1, "", "a")] * 2 + [kernel(1, "", "a", fresh="a")] * 3
    for works in (given_up, overwritten):
        assert kept(works, 1, out_gbps=0.01).ns == len(works) == best_kept_schedule(works, 1)
    later = [kernel(1, "", "a"), kernel(1, "", "b"), kernel(1, "", "c", dies="ab")]
    assert kept(later, 1, out_gbps=0.01).ns == 100 + 1, (
        "there are two before the last kernel, and one is away"
    )


def test_what_a_kernel_overwrites_is_kept_and_read_where_it_is() -> None:
    """Two pieces in turn, overwritten and then read, on a card for one. Nobody may forget a piece
    because a kernel will overwrite it: it comes back, or is written where it is; then it is read
    from there.
    """
    works = [kernel(1, "", "a"), kernel(1, "", "b")] + [
        one for key in "abab" for one in (kernel(1, "", key), kernel(1, key))
    ]
    assert bound.bound(works, Link(1, 0.1, 1)).transfers_ns == 0
    found = kept(works, 1)
    assert found.transfers_ns == 3, "the other one is there each time but the last"
    assert found.ns <= best_kept_schedule(works, 1)
    given_up = [kernel(1, "", "a"), kernel(1, "", "b")] + [
        one for key in "abab" for one in (kernel(1, "", key, fresh=key), kernel(1, key, dies=key))
    ]
    assert kept(given_up, 1).ns <= best_kept_schedule(given_up, 1)
    assert kept(given_up, 1).transfers_ns == 1, "once, until the first is given up"


def test_what_was_given_up_leaves_nothing_behind() -> None:
    """Neither has it to come in when the memory is used again, nor was what is there then written
    before.
    """
    over = [kernel(1, "", "a"), kernel(1, "", "b")] + [
        one for key in "abab" for one in (kernel(1, "", key, fresh=key), kernel(1))
    ]
    for duplicates in (True, False):
        assert bound.bound(over, Link(1, 1 / 1000, 1, duplicates, kept=True)).ns == len(over)
    for again in (
        [kernel(1, dies="a"), kernel(1, "a"), kernel(1, "", "b")],
        [Work(1, (Use("a", 1, False, False, fresh=True),)), kernel(1, "", "b")],
    ):
        works = [kernel(1, "", "a"), *again, kernel(1)]
        assert kept(works, 1, out_gbps=1 / 1000).ns == len(works), (
            "it may be on the host, which nobody wrote to"
        )


def test_what_was_given_up_has_no_reader() -> None:
    works = [
        kernel(1, "", "a"),
        kernel(1, "", "b"),
        kernel(1, "b", dies="a"),
        kernel(1, dies="b"),
        kernel(1, "", "a"),
        kernel(1, "a"),
    ]
    assert (
        bound.bound(works, Link(1, 1 / 1000, 1, kept=True)).ns
        == len(works)
        <= best_kept_schedule(works, 1)
    )


def test_what_is_overwritten_often_is_there_once() -> None:
    """Of three pieces one comes in before the long kernel, whatever was written over and over is
    read behind it.
    """
    written = [kernel(1, "", key) for key in "bcaaa"]
    works = [*written, kernel(1, "b"), kernel(1, "c"), kernel(50), kernel(1, "a")]
    assert bound.bound(works, Link(1, 0.1, 1, kept=True)).ns == len(written) + 10 + 50 + 1


def test_of_a_disk_nothing_is_said() -> None:
    works = [kernel(1, "", "a"), kernel(1, "", "b")] + [kernel(1, key, key) for key in "abab"]
    behind = Link(1, 1, 1, disk=bound.Disk(0, 0.01, 0.01), kept=True)
    assert bound.bound(works, behind) == kept(works, 1)


def test_without_copies_in_advance_what_was_read_leaves_after_that() -> None:
    works = (
        [kernel(1, "", key) for key in "ab"]
        + [kernel(9)] * 2
        + [kernel(1, key) for key in "ab"]
        + [kernel(1, "", key) for key in "cd"]
    )
    works.append(kernel(1, dies="abcd"))
    ahead, after = (kept(works, 2, duplicates, 0.1).ns for duplicates in (True, False))
    assert ahead == 25, "copied out when they had been written"
    assert after == 41, "two go out behind the first of the readings"


def steps_of(trace: Trace) -> Steps:
    outcome = replay(
        trace,
        machine("v100-16gb"),
        BY_NAME["unlimited"].settings(1024),
        1 << 40,
        keep_launches=True,
    )
    found = needs(trace, outcome.launches, step_ends(outcome, trace))
    assert found is not None
    return found


class Arrays:
    """A program on arrays of 64 MiB, each of them PyTorch's only block of an allocation; each
    launch is a step of 1 us, unless it is shorter.
    """

    def __init__(self, count: int) -> None:
        self.writer = TraceWriter()
        self.writer.device(1 << 20)
        for slot in range(count):
            self.writer.allocate(slot, 32)

    def active(self, slot: int, is_active: bool = True) -> None:
        self.writer.block(is_active, slot, 0, ARRAY, 0)

    def launch(self, slot: int, flags: int, bytes: int = ARRAY, ns: float = 1e3) -> None:
        ends_step = ns >= 1e3
        self.writer.launch(
            1 + slot,
            [BlockRange(slot, 0, 32)],
            [Access(slot, flags, 0, bytes)],
            ns,
            ends_step=ends_step,
        )

    def fill(self, slot: int) -> None:
        self.writer.copy_inside(9, Access(slot, WRITE, 0, ARRAY), None, [BlockRange(slot, 0, 32)])

    def copy_in(self, slot: int) -> None:
        self.writer.copy(8, Access(slot, WRITE, 0, ARRAY), BlockRange(slot, 0, 32), True)

    @cached_property
    def steps(self) -> Steps:
        return steps_of(self.writer.trace("arrays"))

    def transfers_ns(
        self, is_kept: bool = True, in_gbps: float = 10.0, out_gbps: float = 10.0
    ) -> float:
        """Of all of it, on a card of 64 MiB."""
        found = self.steps
        works = found.kept if is_kept else found.works
        assert works is not None
        return bound.between(
            works, Link(ARRAY, in_gbps, out_gbps, kept=is_kept), 0, found.gaps[-1]
        ).transfers_ns


@pytest.mark.parametrize("how", ["block", "allocation", "another in its place"])
def test_content_ends_where_the_program_gives_it_up(how: str) -> None:
    """Arrays are written one after the other, and never read. The card holds one; the next is
    written right behind the other's end.
    """

    def written(gives_up: bool) -> Arrays:
        arrays = Arrays(6)
        for slot in range(6):
            arrays.active(slot)
            arrays.launch(slot, WRITE)
            if gives_up and how == "block":
                arrays.active(slot, False)
            elif gives_up and how == "allocation":
                arrays.writer.free(slot)
            elif gives_up:
                arrays.writer.allocate(slot, 32, generation=2)
        return arrays

    assert written(True).transfers_ns() == 0
    assert written(False).transfers_ns() == pytest.approx(5 * MOVE_NS), "all but the last are kept"
    assert written(False).transfers_ns(is_kept=False) == 0, "nobody reads them"


@pytest.mark.parametrize("how", ["kernel", "memset", "copy from the host"])
def test_only_the_driver_overwrites_for_certain(how: str) -> None:
    """Two arrays in turn are overwritten, then read. What a kernel overwrites has to come in first;
    what the driver overwrites has not.
    """

    def read_in_turn() -> Arrays:
        arrays = Arrays(2)
        for number in range(8):
            if how == "kernel":
                arrays.launch(number % 2, WRITE)
            elif how == "memset":
                arrays.fill(number % 2)
            else:
                arrays.copy_in(number % 2)
            arrays.launch(number % 2, READ)
        return arrays

    slow, quick = read_in_turn().transfers_ns(in_gbps=0.01), read_in_turn().transfers_ns()
    assert (slow > quick) == (how == "kernel")


@pytest.mark.parametrize("flags", [READ, WRITE, READ | WRITE])
def test_memory_that_is_handed_out_again_has_nothing_to_fetch(flags: int) -> None:
    arrays = Arrays(2)
    for _ in range(3):
        arrays.launch(0, WRITE)
        arrays.launch(1, WRITE)
        arrays.active(0, False)
        arrays.active(0)
        arrays.launch(0, flags)
        arrays.launch(0, READ)
        arrays.active(0, False)
        arrays.active(1, False)
    assert arrays.transfers_ns(in_gbps=0.01) == arrays.transfers_ns()


def test_launches_in_a_row_are_told_apart_where_content_ends() -> None:
    """Short kernels between two gaps: one writes, the memory is handed out again, and the other
    reads what nobody has written.
    """
    arrays = Arrays(3)
    for slot in (0, 1):
        arrays.launch(slot, WRITE, ns=1.0)
        arrays.active(slot, False)
        arrays.active(slot)
        arrays.launch(slot, READ, ns=1.0)
        arrays.launch(2, READ, 1 << 10)
    assert arrays.transfers_ns() == 0


def test_what_is_announced_once_more_has_not_ended() -> None:
    arrays = Arrays(3)
    for number in range(3):
        arrays.launch(number, WRITE)
        arrays.writer.allocate(number, 32)
    assert arrays.transfers_ns() == pytest.approx(2 * MOVE_NS)


@pytest.mark.parametrize(
    ("flags", "size"), [(WRITE, 1 << 10), (PERHAPS, 1 << 10), (PERHAPS, ARRAY)]
)
def test_what_a_kernel_may_overwrite_is_kept(flags: int, size: int) -> None:
    """Two arrays are read in turn. Before each reading a kernel writes a KiB there, or perhaps all:
    nobody can tell what is left.
    """
    arrays = Arrays(2)
    for number in range(8):
        arrays.launch(number % 2, flags, size)
        arrays.launch(number % 2, READ)
    assert arrays.transfers_ns() == pytest.approx(3 * MOVE_NS), "one of them could stay"


def test_what_ends_on_another_stream_is_not_in_order() -> None:
    writer = TraceWriter()
    writer.device(1 << 20)
    writer.allocate(0, 32)
    for _ in range(6):
        writer.launch(1, [BlockRange(0, 0, 32)], [Access(0, READ, 0, ARRAY)], 1e3, ends_step=True)
    trace = writer.trace("one stream")
    assert steps_of(trace).kept is not None
    *_, last = work.decode(trace.work)
    # A copy to the host ends nothing.
    for kind, has_bound in ((work.DISCARD, False), (work.COPY, True)):
        beside = work.Work(
            kind, last.sequence, stream=7, device_bytes=ARRAY, accesses=(Access(0, 0, 0, ARRAY),)
        )
        found = steps_of(Trace("two streams", trace.events, trace.work + beside.encode()))
        assert (found.kept is not None) == has_bound


@pytest.mark.parametrize("on", ["v100-16gb", "a100-40gb-g10"])
def test_no_policy_is_below_it(on: str) -> None:
    above = 0
    for seed in range(8):
        compared = compare(
            Workload("random", random_program(seed), on), on, MOVING, (24 + 24 * (seed % 3)) * MIB
        )
        assert compared.bound_ns is not None
        assert compared.kept_bound_ns is not None
        assert compared.kept_bound_ns >= compared.bound_ns
        above += compared.kept_bound_ns > compared.bound_ns
        for name, row in compared.rows.items():
            if name != "unlimited" and row.does_not_fit is None:
                assert row.ns >= compared.kept_bound_ns * (1 - 1e-9), (seed, name)
    assert above, "it says more than the first"
