"""Commands that come thousands of launches late, and a daemon that falls so far behind that events
are lost.
"""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import cast

import pytest
from daemon_side import MOVED, Decide, FakeDaemon
from fault_tools import Training, nothing_left_behind, sessions, stop, wait_until_idle
from late_core import DISCARD, LateCore
from running import wait_until


@pytest.mark.parametrize("late", [1, 17, 3000])
@pytest.mark.parametrize("anew", [0, 1, 2])
def test_late_commands_in_lock_step_are_harmless(
    training: Training, runtime_dir: Path, late: int, anew: int
) -> None:
    """Discards above all: most of their memory is in use again, or gone, or was used by other
    launches in between.
    """
    core = LateCore(late)
    with FakeDaemon(runtime_dir, cast(Decide, core)) as daemon:
        ran = training.run(late // 10 + 120, 3, 5, anew, 64)
        assert ran.right, ran
        session = daemon.finished()
    assert core.released.get(DISCARD, 0) > 100
    became = {event.moved[1] for event in session.events if event.kind == MOVED}
    if late == 1:
        assert ran.calls["cuMemDiscardBatchAsync"][0] > 100, "it comes in time still"
    else:
        assert became >= {"stale" if anew == 2 else "cancelled"}
    assert "failed" not in became


@pytest.mark.parametrize("late", [10, 3000])
@pytest.mark.parametrize("anew", [0, 3])
def test_late_commands_to_a_program_that_runs_ahead_are_harmless(
    training: Training, runtime_dir: Path, late: int, anew: int
) -> None:
    """It waits once, until commands for what is long gone have come: a program that is much faster
    than its daemon would end before.
    """
    core = LateCore(late)
    rounds = late // 10 + 120
    with FakeDaemon(runtime_dir, cast(Decide, core)) as daemon:
        process = training.start(rounds, 3, 5, anew, 64, DEEPUM_SYNC=0, FAULT_HOLD=rounds - 10)
        training.held_at(process, rounds - 10)
        events = daemon.session().events

        def became() -> set[str]:
            return {event.moved[1] for event in list(events) if event.kind == MOVED}

        assert wait_until(lambda: sum(core.released.values()) > 500, 60)
        assert not anew or wait_until(lambda: "stale" in became()), became()
        training.go_on(process)
        ran = training.finish(process)
        assert ran.right, ran
        daemon.finished()


@pytest.mark.parametrize(("anew", "resumed", "rounds"), [(0, 500, 800), (2, 500, 800)])
def test_events_that_find_the_ring_full_are_lost_and_told(
    training: Training,
    daemon: int,
    runtime_dir: Path,
    stats: Path,
    anew: int,
    resumed: int,
    rounds: int,
) -> None:
    """The daemon is stopped while a ring of 4 MiB fills, which is no silence however busy the
    machine is, and learns anew what lives.
    """
    with nothing_left_behind(runtime_dir, daemon):
        process = training.start(
            rounds,
            2,
            5,
            anew,
            64,
            16,
            DEEPUM_SYNC=0,
            DEEPUM_LOG=2,
            FAULT_HOLD=f"20,{resumed}",
            DEEPUM_DAEMON_SILENCE=600,
        )
        training.held_at(process, 20)
        stop(daemon)
        training.go_on(process)
        training.held_at(process, resumed)
        os.kill(daemon, signal.SIGCONT)
        wait_until_idle(daemon)
        training.go_on(process)
        ran = training.finish(process)
        assert ran.right, ran
        (report,) = sessions(stats)
    assert report["warnings"] == []
    messages = [
        line
        for line in ran.err.splitlines()
        if line != "deepum: gates: none has opened for a while; all were opened"
    ]
    assert messages and all(
        re.fullmatch(r"deepum: the daemon fell behind; \d+ events were lost", line)
        for line in messages
    ), ran.err
    assert report["core"]["events_lost"] > 1000
    assert report["core"]["allocated_bytes"] == 0, "it knew at the end what had ended"


def test_a_mover_that_is_held_up_lets_the_rings_fill_and_nothing_breaks(
    training: Training, daemon: int, runtime_dir: Path, stats: Path
) -> None:
    """A single call of the driver takes 2 s: commands pile up, the daemon waits for room, events
    pile up; how far depends on speed.
    """
    call = {
        "FAULT_CALL": "cuMemPrefetchAsync_v2",
        "FAULT_FROM": 9,
        "FAULT_TO": 9,
        "FAULT_PAUSE": 2000,
    }
    with nothing_left_behind(runtime_dir, daemon):
        process = training.start(
            14000,
            2,
            5,
            0,
            64,
            DEEPUM_SYNC=0,
            DEEPUM_LOG=2,
            DEEPUM_LAUNCH_QUEUE=0,
            FAULT_HOLD=13900,
            **call,
        )
        training.held_at(process, 13900)
        time.sleep(2)  # the daemon is idle while it waits for room, too
        wait_until_idle(daemon)
        training.go_on(process)
        ran = training.finish(process)
        assert ran.right, ran
        (report,) = sessions(stats)
    assert ran.failed() == 1 and report["warnings"] == []
    assert report["core"]["commands"] > 1 << 14, "more than the ring holds"
    assert report["core"]["allocated_bytes"] == 0
