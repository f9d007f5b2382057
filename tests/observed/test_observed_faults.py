"""What is observed of the GPU's faults is what the simulated GPU counts, and reaches the daemon;
and when nobody looks.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from touching import TOUCH

from deepum.core import Execute, Progress
from deepum.core.records import FAULT_READ, FAULT_WRITE

Run = Callable[..., Any]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

# Three arrays of 12, 8 and 4 blocks on a card of 32: one read, one written, one both.
PROGRAM = (
    TOUCH
    + """
    a, b, c = device(12 * n), device(8 * n), device(4 * n)
    for block in range(8):
        ck(m.add(0, at(a, block), at(a, block), at(b, block), n))
    ck(m.scale(0, at(c, 1), 2 * n, 2.0))
    ck(d.cuCtxSynchronize())
"""
)
# A loop over twice what the card has.
LOOP = (
    TOUCH
    + """
    a = device(64 * n)
    for step in range(24):
        for block in range(0, 64, 4):
            ck(m.set(0, at(a, block), 4 * n, 1.0))
        ck(d.cuCtxSynchronize())
"""
)


def test_events_tell_the_blocks_that_faulted_and_how(run: Run) -> None:
    ran = run(PROGRAM)
    reads = {(0, block): FAULT_READ for block in range(8)}
    writes = {(1, block): FAULT_WRITE for block in range(8)} | {
        (2, block): FAULT_WRITE for block in (1, 2)
    }
    assert ran.blocks == reads | writes
    assert ran.observed == ran.statistics["faults"] > 0
    # Taken at the one wait: neighbours that were accessed alike are one event.
    assert [(f.range.slot, f.range.first, f.range.count, f.flags) for f in ran.faults] == [
        (0, 0, 8, FAULT_READ),
        (1, 0, 8, FAULT_WRITE),
        (2, 1, 2, FAULT_WRITE),
    ]
    core = ran.statistics["processes"][0]["session"]["core"]
    assert core["faults_observed"] == ran.observed
    assert core["faults_observed_writing"] == sum(
        f.faults for f in ran.faults if f.flags & FAULT_WRITE
    )
    assert core["malformed_events"] == 0


def test_two_runs_observe_the_same_to_the_bit(run: Run) -> None:
    first = run(
        LOOP, "--policy", "correlation", "--faults", "on", env={"DEEPUM_FAULT_INTERVAL": "5"}
    )
    second = run(
        LOOP, "--policy", "correlation", "--faults", "on", env={"DEEPUM_FAULT_INTERVAL": "5"}
    )
    assert first.log == second.log
    assert len(first.faults) > 20
    assert first.observed == first.statistics["faults"]


def test_each_look_tells_when_the_gpu_was_there(run: Run) -> None:
    ran = run(LOOP, "--faults", "on", env={"DEEPUM_FAULT_INTERVAL": "4"})
    progress = [
        (event.completed, event.completed_at) for event in ran.events if isinstance(event, Progress)
    ]
    assert all((completed > 0) == (at > 0) for completed, at in progress)
    points = sorted({(completed, at) for completed, at in progress if completed})
    # One time for a place, in order.
    assert points == [point for i, point in enumerate(dict(progress).items()) if i or point[0]]
    times = [at for _, at in points]
    assert times == sorted(times)
    taken = ran.statistics["processes"][0]["simulated"]["gpu_time_s"] * 1e6
    assert 0.9 * taken < times[-1] < taken


@pytest.mark.parametrize("interval", [1, 1000])
def test_nothing_is_lost_however_rarely_it_looks(run: Run, interval: int) -> None:
    ran = run(LOOP, "--faults", "on", env={"DEEPUM_FAULT_INTERVAL": str(interval)})
    assert ran.observed == ran.statistics["faults"]
    assert ran.blocks == {(0, block): FAULT_WRITE for block in range(64)}


def test_faults_of_memory_that_is_freed_are_told_before_its_end(run: Run) -> None:
    ran = run(
        TOUCH
        + """
    for size in (4, 2, 6):
        p = device(size * n)
        ck(m.set(0, p, size * n, 1.0))
        ck(d.cuStreamSynchronize(0))
        ck(m.scale(0, p, n, 1.0))
        ck(d.cuMemFree(p))
    """
    )
    assert ran.observed == ran.statistics["faults"]
    assert [(f.range.first, f.range.count) for f in ran.faults] == [(0, 4), (0, 2), (0, 6)]


def test_it_is_on_only_while_tables_learn(run: Run) -> None:
    launches = 24 * 16
    learning, always = run(LOOP), run(LOOP, "--faults", "on")
    assert always.launches_before_last_fault == launches
    # One iteration to learn in, two in which nothing was new, 256 launches, and at most a look
    # later.
    assert learning.launches_before_last_fault <= 16 + 2 * 16 + 256 + 64 < launches
    assert 0 < learning.observed < learning.statistics["faults"] == always.statistics["faults"]


def test_what_is_new_turns_it_on_again(run: Run) -> None:
    new = """
    e = device(8 * n)
    for block in range(4):
        ck(m.scale(0, at(e, block), n, 1.0))
        ck(d.cuCtxSynchronize())
    """
    ran = run(LOOP + new)
    # The first new launch is what asks; the looks after it see the next ones.
    assert {block for slot, block in ran.blocks if slot == 1} == {1, 2, 3}


def test_off_means_off(run: Run) -> None:
    ran = run(PROGRAM, "--faults", "off")
    assert ran.faults == [] and ran.statistics["faults"] > 0
    assert ran.statistics["warnings"] == []


# With a choice of sources, CUPTI is left to a profiler and faults are observed through uvm-tools;
# with CUPTI alone they are not.
@pytest.mark.parametrize("source", ["auto", "cupti"])
def test_a_profiler_that_was_there_first_keeps_cupti(run: Run, source: str) -> None:
    program = (
        "from cupti_client import *\ncupti = Cupti()\nassert cupti.subscribe()[0] == 0\n"
        + textwrap.dedent(PROGRAM)
    )
    program += (
        "cupti.start()\nck(m.set(0, at(c, 3), n, 1.0))\nck(d.cuCtxSynchronize())\nassert "
        "len(cupti.flush()) == 1\n"
    )
    ran = run(program, "--tune", f"fault_source={source}", env={"DEEPUM_LOG": "2"})
    if source == "auto":
        assert ran.observed == ran.statistics["faults"]
        assert (
            ran.err.count(
                "deepum: faults are observed through uvm-tools: CUPTI: a profiler holds CUPTI"
            )
            == 1
        )
    else:
        assert ran.faults == []
        assert ran.err.count("deepum: faults are not observed: CUPTI: a profiler holds CUPTI") == 1


@pytest.mark.parametrize("source", ["auto", "cupti"])
def test_a_profiler_that_comes_later_gets_cupti_and_all_of_its_records(
    run: Run, source: str
) -> None:
    ran = run(
        PROGRAM
        + """
    from cupti_client import *
    ck(m.set(0, at(a, 8), n, 1.0))
    cupti = Cupti()
    assert cupti.subscribe()[0] == 0
    cupti.start()
    ck(m.set(0, at(a, 9), n, 1.0))
    ck(d.cuCtxSynchronize())
    assert [f.block for f in cupti.flush()] == [at(a, 9) // BLOCK]
    """,
        "--tune",
        f"fault_source={source}",
        env={"DEEPUM_LOG": "2"},
    )
    if source == "auto":
        assert {block for slot, block in ran.blocks if slot == 0} == set(range(10))
        assert ran.observed == ran.statistics["faults"]
        assert (
            ran.err.count(
                "deepum: faults are observed through uvm-tools: CUPTI: a profiler takes CUPTI"
            )
            == 1
        )
    else:
        assert {block for slot, block in ran.blocks if slot == 0} == set(range(9))
        assert (
            ran.err.count("deepum: faults are not observed any more: CUPTI: a profiler takes CUPTI")
            == 1
        )


def test_a_child_process_observes_nothing_and_ends(run: Run) -> None:
    ran = run(
        PROGRAM
        + """
    child = os.fork()
    if child == 0:
        os._exit(0 if d.cuCtxSynchronize()[0] != 0 else 1)
    assert os.waitpid(child, 0)[1] == 0
    ck(m.set(0, at(a, 11), n, 1.0))
    ck(d.cuCtxSynchronize())
    """
    )
    assert ran.blocks[0, 11] == FAULT_WRITE
    assert ran.observed == ran.statistics["faults"]


@pytest.mark.parametrize("lock_step", ["0", "1"])
@pytest.mark.parametrize("faults", ["off", "times"])
def test_off_calls_nothing_of_cupti(
    by_hand: Run, spy: Callable[..., Path], tmp_path: Path, lock_step: str, faults: str
) -> None:
    folder, calls = spy(), tmp_path / "calls"
    settings = {"CUPTI_SPY": str(calls), "DEEPUM_SYNC": lock_step, "DEEPUM_SIM_UVM_TOOLS": "absent"}
    by_hand(
        PROGRAM + "    import time; time.sleep(0.3)\n", folder, **settings, DEEPUM_FAULTS=faults
    )
    assert not calls.exists()
    done = by_hand(PROGRAM + "    import time; time.sleep(0.3)\n", folder, **settings)
    assert calls.read_text().split() == ["cuptiSubscribe"]  # it refuses, and is not asked again
    assert "faults are not observed: CUPTI: cuptiSubscribe answered with error 35" in done.stderr


def test_a_library_that_lacks_a_function_is_none(
    by_hand: Run, spy: Callable[..., Path], tmp_path: Path
) -> None:
    folder = spy("-DLACKING")
    settings = {
        "CUPTI_SPY": str(tmp_path / "calls"),
        "DEEPUM_SYNC": "1",
        "DEEPUM_SIM_UVM_TOOLS": "absent",
    }
    done = by_hand(PROGRAM, folder, **settings)
    assert "faults are not observed: CUPTI: no libcupti.so.13 or .12 was found" in done.stderr
    assert not (tmp_path / "calls").exists()
    assert "faults" not in by_hand(PROGRAM, folder, **settings, DEEPUM_LOG="1").stderr


def test_without_lock_step_a_thread_looks(by_hand: Run, tmp_path: Path) -> None:
    from deepum.core import EventLog, Fault, events

    log = tmp_path / "log"
    threads = (
        "    import time; time.sleep(0.5); print(*(p.read_text() for p in "
        "Path('/proc/self/task').glob('*/comm')))\n"
    )
    done = by_hand(
        PROGRAM + threads,
        tmp_path,
        DEEPUM_RECORD=str(log),
        DEEPUM_SYNC="0",
        DEEPUM_POLICY="on-demand",
    )
    assert "deepum-faults" in done.stdout
    blocks: dict[tuple[int, int], int] = {}
    for fault in (
        event for event in events(EventLog.read(log).records) if isinstance(event, Fault)
    ):
        for block in range(fault.range.first, fault.range.first + fault.range.count):
            blocks[fault.range.slot, block] = blocks.get((fault.range.slot, block), 0) | fault.flags
    assert blocks == {(0, block): FAULT_READ for block in range(8)} | {
        **{(1, block): FAULT_WRITE for block in range(8)},
        **{(2, block): FAULT_WRITE for block in (1, 2)},
    }


@pytest.mark.torch
def test_pytorch(run: Run) -> None:
    train = [
        sys.executable,
        EXAMPLES / "train_mlp.py",
        "--layers",
        "4",
        "--width",
        "2048",
        "--batch",
        "512",
        "--steps",
        "3",
    ]
    first = run("", "--faults", "on", "--policy", "correlation", command=train)
    second = run("", "--faults", "on", "--policy", "correlation", command=train)
    assert first.log == second.log
    assert first.observed == first.statistics["faults"] > 0
    # Blocks that were read alone, written alone, and both since the last look.
    assert {fault.flags for fault in first.faults} == {
        FAULT_READ,
        FAULT_WRITE,
        FAULT_READ | FAULT_WRITE,
    }
    assert first.statistics["warnings"] == [] and "faults are not" not in first.err


def test_times_alone_are_told_without_faults_while_the_daemon_wants_them(run: Run) -> None:
    interval = {"DEEPUM_FAULT_INTERVAL": "4"}
    ran, always = run(LOOP, "--faults", "times", env=interval), run(LOOP, "--faults", "on")
    assert ran.faults == [] and ran.statistics["faults"] == always.statistics["faults"] > 0
    progress = [event for event in ran.events if isinstance(event, Progress)]
    times = [event.completed_at for event in progress if event.completed]
    assert len(set(times)) > 10 and times == sorted(times) and all(times)
    # As with `auto`: nobody plans here, so that they are wanted while tables learn.
    kinds = [type(event) for event in ran.events]
    last = len(kinds) - kinds[::-1].index(Progress)
    assert sum(kind is Execute for kind in kinds[:last]) <= 16 + 2 * 16 + 256 + 64 < 24 * 16
    assert ran.statistics["warnings"] == []
