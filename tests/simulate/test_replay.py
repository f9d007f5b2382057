"""The replay: host, launch queue and GPU in virtual time; decisions that know nothing of the
future; traces that are damaged.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random

import pytest
from deepum._core import lib
from small import MIB, random_iteration, training

from deepum.core import BlockRange, CoreSettings, events
from deepum.simulate.mode import LOCK_STEP
from deepum.simulate.policies import BY_NAME
from deepum.simulate.replay import Outcome, machine, replay
from deepum.trace import Trace, TraceWriter, g10, work

NS = 10_000.0


def kernels(count: int, ns: float, synchronise: bool = False) -> Trace:
    """Launches on one array of 8 MiB."""
    writer = TraceWriter()
    writer.device(64)
    writer.allocate(0, 4)
    access = work.Access(0, work.READ | work.WRITE, 0, 8 * MIB)
    for number in range(count):
        writer.launch(7, [BlockRange(0, 0, 4)], [access], ns, ends_step=number == count - 1)
    if synchronise:
        writer.synchronise()
    return writer.trace("kernels")


def on_demand(trace: Trace, **figures: float) -> Outcome:
    settings = BY_NAME["on-demand"].settings(1024)
    return replay(trace, machine("v100-16gb", **figures), settings, 128 * MIB, keep_launches=True)


def test_kernels_run_one_after_the_other() -> None:
    outcome = on_demand(kernels(50, 1e6))
    times = outcome.launches
    assert all(b.ready == a.end for a, b in itertools.pairwise(times))
    assert all(launch.end - launch.ready == pytest.approx(1e6) for launch in times[1:])
    assert outcome.counters["compute_ns"] == pytest.approx(50e6)


def test_short_kernels_wait_for_their_launches() -> None:
    """Each launch costs the host launch_ns; kernels that are shorter come no faster."""
    outcome = on_demand(kernels(200, 2e3), launch_ns=NS)
    first, last = outcome.launches[100], outcome.launches[-1]  # the first one's faults are past
    assert (last.ready - first.ready) / 99 == pytest.approx(NS)


def test_the_host_is_no_further_ahead_than_the_launch_queue(tmp_path: Path) -> None:
    """Nothing is predicted: what a launch needs is fetched once it is launched, so a longer queue
    hides more of it. In order of last use: by next use the longest queues may be a hundredth slower
    than shorter ones. In lock-step: behind gates a decision that comes late takes of what a short
    queue hides.
    """
    made = g10.trace(training(tmp_path / "w", layers=16, us=500), 4)
    settings = CoreSettings.default(prefetch_degree=0, invalidation=1, eviction_order=1)
    times = [
        replay(
            made, machine("a100-40gb-g10", launch_queue=queue), settings, 256 * MIB, mode=LOCK_STEP
        ).ns
        for queue in (1, 2, 8, 64)
    ]
    assert times[0] > times[1] > times[2] >= times[3]


def test_a_wait_is_a_mark_with_the_hosts_time() -> None:
    outcome = on_demand(kernels(20, 1e6, synchronise=True))
    step, wait = outcome.marks
    assert (step.kind, wait.kind) == ("step", "synchronise")
    assert wait.ns == step.ns == outcome.ns
    assert wait.launches == 20


@pytest.mark.parametrize(
    "policy",
    ["deepum", "deepum-paper", "lookahead-8", *(name for name in BY_NAME if name.endswith("-use"))],
)
def test_what_comes_later_changes_no_earlier_command(tmp_path: Path, policy: str) -> None:
    """Two runs that part after 60 % of their events give the same commands up to there. In
    lock-step: behind gates decisions hang on when moves were done, and one of the two has no times
    of launches.
    """
    iteration = training(tmp_path / "w")
    whole = g10.trace(iteration, 5)
    records = list(events(whole.events))
    cut = records[len(records) * 6 // 10].sequence
    at = (cut - 1) * 8  # a sequence is where the record lies, in words
    random = Random(1)
    rest, begin = [], at
    while begin < len(whole.events):
        length = int.from_bytes(whole.events[begin : begin + 2], "little") * 8
        rest.append(whole.events[begin : begin + length])
        begin += length
    headers = [record[8:16] for record in rest]
    random.shuffle(rest)
    shuffled = b"".join(
        record[:8] + header + record[16:] for record, header in zip(rest, headers, strict=True)
    )
    settings = BY_NAME[policy].settings(1024)
    cards = machine("a100-40gb-g10", launch_queue=BY_NAME[policy].launch_queue or 1024)
    outcomes = [
        replay(
            Trace("t", whole.events[:at] + tail, whole.work if tail == whole.events[at:] else b""),
            cards,
            settings,
            256 * MIB,
            keep_commands=True,
            mode=LOCK_STEP,
        )
        for tail in (whole.events[at:], shuffled)
    ]
    known = replay(
        Trace("t", whole.events[:at], whole.work),
        cards,
        settings,
        256 * MIB,
        keep_commands=True,
        mode=LOCK_STEP,
    ).commands
    assert len(known) > 0
    assert all(outcome.commands.startswith(known) for outcome in outcomes)
    assert outcomes[0].commands != outcomes[1].commands


@pytest.mark.parametrize("seed", range(6))
def test_two_replays_are_the_same(tmp_path: Path, seed: int) -> None:
    made = g10.trace(random_iteration(tmp_path / "w", seed), 4, synchronise=True)
    settings = BY_NAME["deepum"].settings(1024)
    first, second = (
        replay(
            made,
            machine("a100-40gb-g10"),
            settings,
            64 * MIB,
            keep_commands=True,
            keep_launches=True,
        )
        for _ in range(2)
    )
    assert first == second


def test_a_launch_without_work_reads_and_writes_all_that_it_may() -> None:
    whole = kernels(10, 1e6)
    outcome = on_demand(Trace("bare", whole.events))
    assert outcome.counters["kernels"] == 10
    assert outcome.counters["bytes_accessed"] == 10 * 8 * MIB
    assert outcome.counters["compute_ns"] == pytest.approx(10 * 16 * MIB / (900 * 0.88), rel=1e-3)


def test_damaged_traces_are_refused(tmp_path: Path) -> None:
    """Never a crash: each is refused, or replayed as far as it makes sense."""
    made = g10.trace(training(tmp_path / "w", layers=3), 2)
    random = Random(5)
    refused = 0
    for _ in range(300):
        broken_events, broken_work = bytearray(made.events), bytearray(made.work)
        for _ in range(random.randrange(1, 6)):
            target = random.choice((broken_events, broken_work))
            at = random.randrange(len(target) // 8) * 8 + random.choice((0, 1, 2, 4, 7))
            target[at] = random.randrange(256)
        if random.random() < 0.3:
            del broken_work[random.randrange(len(broken_work)) :]
        try:
            replay(
                Trace("broken", bytes(broken_events), bytes(broken_work)),
                machine("v100-16gb"),
                CoreSettings.default(),
                64 * MIB,
            )
        except ValueError:
            refused += 1
    assert 0 < refused < 300


def test_figures_out_of_range_are_refused() -> None:
    made = kernels(1, 1e3)
    with pytest.raises(ValueError, match="out of range"):
        replay(made, machine("v100-16gb", launch_queue=0), CoreSettings.default())
    with pytest.raises(ValueError, match="out of range"):
        replay(made, machine("v100-16gb"), CoreSettings.default(policy=9))
    with pytest.raises(ValueError, match="abacus"):
        machine("abacus")


def test_a_memset_of_which_only_the_event_is_known_brings_nothing_from_the_host() -> None:
    """A write by the copy functions is a copy from the host or a memset, which the event says."""
    brought = []
    for memset in (0, int(lib.DEEPUM_EXECUTE_MEMSET)):
        writer = TraceWriter()
        writer.device(64)
        writer.allocate(0, 4)
        writer.execute(
            7, written=[BlockRange(0, 0, 4)], flags=int(lib.DEEPUM_EXECUTE_COPY) | memset
        )
        writer.synchronise()
        brought.append(on_demand(writer.trace("writes")).counters["bytes_h2d"])
    assert brought == [8 * MIB, 0]
