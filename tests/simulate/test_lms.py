"""Tensor swapping as LMS does it: what is where when a launch runs, whose memory is taken, what it
costs, and when there is none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from followed import follow
from small import MIB, random_iteration, training, write

from deepum.core import BlockRange
from deepum.errors import UsageError
from deepum.simulate import lms
from deepum.simulate.batches import fits, largest
from deepum.simulate.comparison import compare
from deepum.simulate.footprint import footprint
from deepum.simulate.lms.swapper import OutOfMemoryError, Swapper, Tensor
from deepum.simulate.policies import BY_NAME
from deepum.simulate.policy_run import DoesNotFitError, run
from deepum.simulate.steps import steady, steps
from deepum.simulate.workload import Workload
from deepum.trace import Trace, TraceWriter, g10, work
from deepum.trace.work import READ, WRITE, Access

LMS, MOD, UNLIMITED = (BY_NAME[name] for name in ("lms", "lms-mod", "unlimited"))
MACHINE = "a100-40gb-g10"


class Log:
    """In place of the machine: what is asked of it, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._copies: list[str] = []
        self._count = 0

    def map(self, size: int) -> int:
        """Each segment at the next GiB."""
        self._count += 1
        self.lines.append(f"map {size // MIB}")
        return self._count << 30

    def unmap(self, address: int) -> None:
        """The segment by its number."""
        self.lines.append(f"unmap {address >> 30}")

    def drain(self) -> None:
        """A wait for all."""
        self.lines.append("drain")

    def out(self, address: int, size: int) -> int:
        """The segment by its number, and MiB into it."""
        return self._copy(f"out {address >> 30}+{(address & (1 << 30) - 1) // MIB}")

    def back(self, address: int, size: int) -> int:
        """The same."""
        return self._copy(f"back {address >> 30}+{(address & (1 << 30) - 1) // MIB}")

    def wait(self, event: int) -> None:
        """For what `out` or `back` named."""
        self.lines.append(f"wait for {self._copies[event]}")

    def take(self) -> list[str]:
        """What was asked since the last time."""
        lines, self.lines = self.lines, []
        return lines

    def _copy(self, what: str) -> int:
        self.lines.append(what)
        self._copies.append(what)
        return len(self._copies) - 1


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def swapper(log: Log) -> Callable[[int], Swapper]:
    """By the memory that tensors may have, MiB: LMS leaves a twentieth of the card alone."""
    return lambda mib: Swapper(-(-mib * MIB * 100 // 95), log)  # type: ignore[arg-type]


def use(swapper: Swapper, *tensors: Tensor) -> None:
    """An operation on them."""
    swapper.pin(tensors)
    swapper.access(tensors)
    swapper.unpin(list(tensors))


def test_the_least_recently_used_tensor_goes_first(
    swapper: Callable[[int], Swapper], log: Log
) -> None:
    card = swapper(60)
    a, b, c = (card.allocate(20 * MIB) for _ in range(3))
    for tensor in (a, b, c, a):
        use(card, tensor)
    assert log.take() == ["map 20"] * 3
    d = card.allocate(20 * MIB)
    assert log.take() == ["out 2+0", "wait for out 2+0"]
    use(card, d, b)
    assert log.take() == ["out 3+0", "wait for out 3+0", "back 3+0", "wait for back 3+0"]
    assert (card.statistics.swapped_out, card.statistics.swapped_in) == (2, 1)
    assert (card.statistics.bytes_out, card.statistics.bytes_in) == (40 * MIB, 20 * MIB)
    assert (card.statistics.host_bytes, card.statistics.peak_host_bytes) == (20 * MIB, 40 * MIB), (
        "c is there; b was until it came back"
    )


def test_a_tensor_in_use_or_never_used_stays(swapper: Callable[[int], Swapper], log: Log) -> None:
    card = swapper(60)
    pinned, new, old = (card.allocate(20 * MIB) for _ in range(3))
    use(card, old)
    card.pin([pinned])
    card.allocate(20 * MIB)
    assert log.take()[3:] == ["out 3+0", "wait for out 3+0"]
    with pytest.raises(OutOfMemoryError) as error:
        card.allocate(20 * MIB)
    assert (error.value.request, error.value.allocated) == (20 * MIB, 60 * MIB)
    assert new.host is False


def test_the_first_that_is_large_enough_goes_with_what_is_free_beside_it(
    swapper: Callable[[int], Swapper], log: Log
) -> None:
    card = swapper(100)
    whole = card.allocate(60 * MIB)
    small = card.allocate(12 * MIB)
    use(card, small)
    use(card, whole)
    card.free(whole)
    first, second, third = (card.allocate(20 * MIB) for _ in range(3))
    rest = card.allocate(28 * MIB)
    use(card, first, second, third, rest)
    card.free(second)
    log.take()
    # Oldest are small (too small), then rest, third, first: the last of an operation's operands is
    # the oldest of them.
    card.allocate(38 * MIB)
    assert log.take() == ["out 1+40", "wait for out 1+40"], (
        "28 MiB are too few; 20 and the 20 beside are enough"
    )


def test_fragments_go_together_where_no_single_one_is_enough(
    swapper: Callable[[int], Swapper], log: Log
) -> None:
    card = swapper(80)
    card.free(card.allocate(60 * MIB))
    pieces = [card.allocate(20 * MIB) for _ in range(3)]
    other = card.allocate(16 * MIB)
    use(card, other)
    for piece in pieces:
        use(card, piece)
    log.take()
    card.allocate(50 * MIB)
    outs = ["out 1+0", "out 1+20", "out 1+40"]
    assert log.take() == [*outs, *(f"wait for {out}" for out in outs)], (
        "all begun before the first is waited for; segment 2 is too small"
    )


def test_all_goes_and_then_the_cache_before_memory_is_out(
    swapper: Callable[[int], Swapper], log: Log
) -> None:
    card = swapper(80)
    tensors = [card.allocate(20 * MIB) for _ in range(4)]
    use(card, *tensors)
    log.take()
    card.allocate(70 * MIB)
    lines = log.take()
    assert [line.split()[0] for line in lines] == ["out"] * 4 + ["wait"] * 4 + ["drain"] + [
        "unmap"
    ] * 4 + ["map"]
    with pytest.raises(OutOfMemoryError):
        use(card, tensors[0])


def test_what_is_copied_out_in_each_round_is_copied_ahead_of_need(
    swapper: Callable[[int], Swapper], log: Log
) -> None:
    """And a copy that was not needed is waited for when the tensor is used, or gone."""
    card = swapper(60)
    ends = []
    for number in range(3):
        a, b, c = (card.allocate(20 * MIB) for _ in range(3))
        for tensor in (a, b, c):
            use(card, tensor)
        ahead = log.take()
        if number < 2:
            d = card.allocate(20 * MIB)
            ends.append((ahead, log.take()))
            card.free(d)
        else:
            use(card, a)
            ends.append((ahead, log.take()))
        for tensor in (a, b, c):
            card.free(tensor)
        log.take()
    assert ends[0] == (["map 20"] * 3, ["out 1+0", "wait for out 1+0"])
    assert ends[1][0][-1].startswith("out ") and ends[1][1] == [f"wait for {ends[1][0][-1]}"]
    assert ends[2][1] == [f"wait for {ends[2][0][-1]}"]
    assert (card.statistics.speculative, card.statistics.speculative_needed) == (2, 1)
    assert card.statistics.host_bytes == 0


def test_emptying_the_cache_gives_whole_segments_back(
    swapper: Callable[[int], Swapper], log: Log
) -> None:
    card = swapper(100)
    a, b = card.allocate(40 * MIB), card.allocate(40 * MIB)
    card.free(a)
    log.take()
    card.empty_cache()
    assert log.take() == ["drain", "unmap 1"]
    card.empty_cache()
    assert log.take() == []
    assert card.allocate(40 * MIB).place.segment is not b.place.segment


# --- Programs


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("every", [None, 3])
def test_all_that_a_launch_touches_is_there_and_is_what_was_written(
    tmp_path: Path, seed: int, every: int | None
) -> None:
    iteration = random_iteration(tmp_path / "random", seed)
    trace = g10.trace(iteration, 4)
    for memory in (40 * MIB, 64 * MIB, 128 * MIB, 1 << 40):
        swapped = lms.rewrite(trace, memory, every)
        if swapped.trace is None:
            assert memory < 1 << 40
            continue
        seen = follow(trace, swapped.trace)
        assert seen.peak_bytes == swapped.statistics.peak_reserved_bytes <= memory * 95 // 100
        assert (seen.bytes_out, seen.bytes_in) == (
            swapped.statistics.bytes_out,
            swapped.statistics.bytes_in,
        )
        assert seen.launches == swapped.launches
        assert memory < 1 << 40 or seen.bytes_out == 0


@pytest.fixture
def workload(tmp_path: Path) -> Workload:
    return Workload("training", g10.trace(training(tmp_path / "training"), 7), MACHINE)


@pytest.mark.parametrize("policy", [LMS, MOD], ids=lambda policy: policy.name)
def test_the_machine_moves_what_was_swapped_and_nothing_else(
    workload: Workload, policy: object
) -> None:
    """No launch reads over the link or faults: bytes each way are those of the copies."""
    swapped = lms.rewrite(workload.trace, 192 * MIB)
    assert swapped.trace is not None
    assert follow(workload.trace, swapped.trace).bytes_out > 0
    outcome = run(workload, MACHINE, LMS, 192 * MIB)
    assert (outcome.counters["bytes_h2d"], outcome.counters["bytes_d2h"]) == (
        swapped.statistics.bytes_in,
        swapped.statistics.bytes_out,
    )
    assert (
        outcome.counters["faults"]
        == outcome.counters["peak_managed_bytes"]
        == outcome.core.commands
        == 0
    )
    assert outcome.core.launches == run(workload, MACHINE, UNLIMITED).core.launches


def test_where_all_fits_it_is_unlimited_memory(workload: Workload) -> None:
    memory = 4096 * MIB
    runs = [
        steps(run(workload, MACHINE, policy, memory), workload.trace) for policy in (LMS, UNLIMITED)
    ]
    for swapping, unlimited in zip(*(steady(one) for one in runs), strict=True):
        assert swapping.ns == pytest.approx(unlimited.ns, rel=1e-9)
        assert swapping.launches == unlimited.launches
        assert swapping.counts["bytes_h2d"] == swapping.counts["bytes_d2h"] == 0


def test_it_is_slower_where_not_all_fits_and_never_below_the_kernels(workload: Workload) -> None:
    found = compare(workload, MACHINE, [LMS, BY_NAME["deepum"]], 192 * MIB)
    assert found.bound_ns is not None
    assert found.rows["lms"].ns > found.rows["deepum"].ns >= found.bound_ns
    assert found.rows["lms"].ns < float("inf")


def test_it_is_deterministic(workload: Workload) -> None:
    assert lms.rewrite(workload.trace, 192 * MIB) == lms.rewrite(workload.trace, 192 * MIB)
    first, second = (run(workload, MACHINE, LMS, 192 * MIB) for _ in range(2))
    assert first == second


def test_the_host_waits_as_the_program_does(tmp_path: Path) -> None:
    """LMS's own waits do not stand in for the program's, and no step ends at them."""
    iteration = training(tmp_path / "training")
    marks = {}
    for policy in (LMS, UNLIMITED):
        loaded = Workload("training", g10.trace(iteration, 6, synchronise=True), MACHINE)
        marks[policy.name] = [
            (mark.kind, mark.launches) for mark in run(loaded, MACHINE, policy, 192 * MIB).marks
        ]
    assert marks["lms"] == marks["unlimited"]
    assert [kind for kind, _ in marks["lms"]].count("synchronise") == 6


def test_operands_of_one_launch_that_do_not_fit_are_out_of_memory(tmp_path: Path) -> None:
    def iteration(operands: int) -> Workload:
        tensors = dict.fromkeys(range(6), (40 * MIB, True))
        kernels = [("one", 100.0, [number], [number], 0) for number in tensors] + [
            ("all", 100.0, list(range(operands)), [], 0)
        ]
        folder = write(tmp_path / f"operands{operands}", tensors, kernels)
        return Workload("operands", g10.trace(g10.read(folder), 5), MACHINE)

    memory = 200 * MIB  # 190 for tensors: four of them
    assert run(iteration(4), MACHINE, LMS, memory).counters["bytes_h2d"] > 0
    with pytest.raises(
        DoesNotFitError,
        match=r"does not fit under lms: out of memory in step 1, after 12 launches: 40\.0 MiB asked for",
    ) as error:
        run(iteration(5), MACHINE, LMS, memory)
    found = compare(iteration(5), MACHINE, [LMS], memory)
    assert found.rows["lms"].does_not_fit == error.value.cause
    assert found.ratios("lms") == (0, 0, float("inf"))
    assert found.as_json()["policies"]["lms"] == {"does_not_fit": error.value.cause}
    assert found.rows["on-demand"].does_not_fit is None


def test_the_next_operation_has_what_it_takes_before_its_results_get_memory(tmp_path: Path) -> None:
    """Else the oldest tensor, which it takes, would go for the result and come back at once."""
    tensors = dict.fromkeys(range(3), (40 * MIB, True)) | {9: (40 * MIB, False)}
    kernels: list[tuple[str, float, list[int], list[int], int]] = [
        *(("use", 100.0, [number], [], 0) for number in range(3)),
        ("make", 100.0, [0], [9], 0),
        ("take", 100.0, [9], [], 0),
    ]
    trace = g10.trace(g10.read(write(tmp_path / "next", tensors, kernels)), 1)
    swapped = lms.rewrite(trace, 128 * MIB)
    assert swapped.trace is not None
    assert follow(trace, swapped.trace).order == [1]


def test_memory_that_is_not_pytorchs_stays_and_counts() -> None:
    def program(size: int) -> Trace:
        writer = TraceWriter()
        writer.device(1 << 20)
        writer.allocate(0, size // (2 * MIB))
        writer.allocate(1, 10)
        writer.block(True, 1, 0, 20 * MIB, 20 * MIB, 20 * MIB)
        where = [BlockRange(0, 0, 4), BlockRange(1, 0, 10)]
        writer.launch(1, where, [Access(0, READ, MIB, 5 * MIB), Access(1, WRITE, 0, 20 * MIB)], 1e5)
        writer.block(False, 1, 0, 20 * MIB, 0, 20 * MIB)
        writer.free(0)
        return writer.trace("beside")

    swapped = lms.rewrite(program(40 * MIB), 100 * MIB)
    assert swapped.trace is not None
    (launch,) = (one for one in work.decode(swapped.trace.work) if one.kind == work.LAUNCH)
    assert [(access.bytes, access.flags) for access in launch.accesses] == [
        (5 * MIB, READ),
        (20 * MIB, WRITE),
    ]
    assert launch.device_bytes == 0
    assert lms.rewrite(program(82 * MIB), 100 * MIB).out_of_memory is not None, (
        "95 % of the 18 MiB left are less than the 20 asked for"
    )
    assert lms.rewrite(program(102 * MIB), 100 * MIB).out_of_memory is not None


def test_a_log_without_work_is_followed_by_what_its_launches_may_touch(workload: Workload) -> None:
    bare = dataclasses.replace(workload.trace, work=b"")
    swapped = lms.rewrite(bare, 256 * MIB)
    assert swapped.trace is not None
    assert swapped.statistics.bytes_out > 0
    outcome = run(dataclasses.replace(workload, trace=bare), MACHINE, LMS, 256 * MIB)
    assert outcome.counters["bytes_h2d"] == swapped.statistics.bytes_in
    fits_all = [
        run(dataclasses.replace(workload, trace=bare), MACHINE, policy, 1 << 33).counters[
            "compute_ns"
        ]
        for policy in (LMS, UNLIMITED)
    ]
    assert fits_all[0] == pytest.approx(fits_all[1], rel=1e-9)


@pytest.mark.parametrize(
    ("reason", "make"),
    [
        ("has no blocks of PyTorch's allocator", lambda w: None),
        ("uses several GPUs", lambda w: w.device(1, device=1)),
        ("has lost events", lambda w: w.lost(3)),
        ("has managed memory of its own", lambda w: w.allocate(7, 1, flags=1)),
        ("launches graphs, whose memory stays where it is", lambda w: w.execute(1, flags=2)),
        (
            "puts work on several streams",
            lambda w: (w.block(True, 0, 0, MIB, MIB), w.execute(1), w.execute(1, stream=1)),
        ),
    ],
)
def test_what_cannot_be_followed_is_refused(
    reason: str, make: Callable[[TraceWriter], object]
) -> None:
    writer = TraceWriter()
    writer.device(100)
    writer.allocate(0, 4)
    make(writer)
    trace = writer.trace("odd")
    assert lms.refusal(trace) == reason
    with pytest.raises(UsageError, match=f"policy 'lms': cannot follow odd, which {reason}; "):
        run(Workload("odd", trace, MACHINE), MACHINE, LMS, 256 * MIB)


# --- The largest batch


def test_the_largest_number_that_runs_is_found() -> None:
    for limit in (1, 2, 3, 7, 8, 9, 100):
        assert largest(lambda number, limit=limit: number <= limit) == limit  # type: ignore[misc]
    assert largest(lambda number: False) is None
    assert largest(lambda number: True, 3, 50) == 50
    assert largest(lambda number: True, 5, 5) == 5
    tried: list[int] = []
    largest(lambda number: tried.append(number) or number <= 1000)  # type: ignore[func-returns-value]
    assert len(tried) <= 22


def test_card_and_host_decide_what_runs(workload: Workload) -> None:
    managed = footprint(workload.trace).managed
    assert 300 * MIB < managed < 600 * MIB
    deepum = BY_NAME["deepum"]
    assert fits(workload.trace, deepum, 64 * MIB, managed)
    assert not fits(workload.trace, deepum, 64 * MIB, managed - 1)
    assert fits(workload.trace, LMS, 192 * MIB)
    assert not fits(workload.trace, LMS, 32 * MIB)
    swapped = lms.rewrite(workload.trace, 192 * MIB).statistics.peak_host_bytes
    assert 0 < swapped < managed
    assert fits(workload.trace, LMS, 192 * MIB, swapped)
    assert not fits(workload.trace, LMS, 192 * MIB, swapped - 1)
    assert fits(workload.trace, UNLIMITED, 1, 1)
