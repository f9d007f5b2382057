"""The daemon is killed, stopped, restarted: programs end right, and the next ones are served."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from fault_tools import Training, daemon_of, holdings, nothing_left_behind, sessions, things
from running import holders, lock_of, socket_of, wait_until

ALONE = "; going on with plain unified memory, without prefetching\n"


def await_round(process: subprocess.Popen[str], number: int) -> None:
    """Returns once the program has queued so many rounds."""
    assert process.stdout is not None
    while (line := process.stdout.readline()) != f"round {number}\n":
        assert line, process.communicate()


@pytest.mark.parametrize("lock_step", [1, 0])
def test_a_killed_daemon_is_done_without_and_the_next_program_gets_another(
    training: Training, runtime_dir: Path, stats: Path, lock_step: int
) -> None:
    killed = []
    for rounds in (1, 2, 5, 9, 14):
        process = training.start(1500, 3, 5, 1, 64, DEEPUM_SYNC=lock_step)
        await_round(process, rounds)
        killed.append(daemon_of(runtime_dir))
        os.kill(killed[-1], signal.SIGKILL)
        ran = training.finish(process)
        assert ran.right, ran
        assert ran.err == "deepum: warning: daemon: it is gone" + ALONE
    assert len(set(killed)) == len(killed), "each program had a daemon of its own"
    for mark in stats.glob("*.open"):  # of the killed ones
        mark.unlink()
    assert training.run(3, 2, 5).right
    (session,) = sessions(stats)
    assert session["core"]["commands"] > 0
    assert things(runtime_dir) <= {
        socket_of(runtime_dir).name,
        lock_of(runtime_dir).name,
        "daemon.log",
    }


def test_a_daemon_that_is_ended_and_started_again_serves_those_that_come(
    training: Training, runtime_dir: Path, stats: Path
) -> None:
    first = training.start(200000, 2, 5, 0, 64)
    await_round(first, 3)
    old = daemon_of(runtime_dir)
    os.kill(old, signal.SIGTERM)
    assert wait_until(lambda: not holders(lock_of(runtime_dir)))
    assert sessions(stats)[0]["warnings"] == ["the daemon ended"]
    await_round(first, 1000)  # it goes on alone
    second = training.run(5, 2, 5)
    assert second.right and daemon_of(runtime_dir) != old
    assert first.poll() is None, "it was to run meanwhile"
    first.kill()
    training.finish(first)
    assert len(sessions(stats)) == 2


def test_a_daemon_that_sleeps_for_a_while_is_waited_for(
    training: Training, daemon: int, runtime_dir: Path, stats: Path
) -> None:
    with nothing_left_behind(runtime_dir, daemon):
        process = training.start(300, 2, 5, 0, 64)
        for number in range(1, 200, 40):
            await_round(process, number)
            os.kill(daemon, signal.SIGSTOP)
            assert not wait_until(lambda: process.poll() is not None, 0.3), (
                "it did not wait for the daemon"
            )
            os.kill(daemon, signal.SIGCONT)
        ran = training.finish(process)
        assert ran.right and ran.err == ""
        (session,) = sessions(stats)
    assert session["core"]["launches"] == 3000 + 5 + 5  # kernels, memsets and copies: none was lost


def test_a_stopped_daemon_holds_up_neither_those_that_run_nor_those_that_come(
    training: Training, daemon: int, runtime_dir: Path
) -> None:
    with nothing_left_behind(runtime_dir, daemon):
        before = holdings(daemon)
        running = training.start(2000, 2, 5, 0, 64)
        await_round(running, 3)
        os.kill(daemon, signal.SIGSTOP)
        try:
            late = training.start(10, 2, 5)
            free = training.run(10, 2, 5, DEEPUM_SYNC=0)
            for ran in (free, training.finish(late)):
                assert ran.right
                assert ran.err == "deepum: warning: daemon: it does not answer" + ALONE
            ran = training.finish(running)
            assert ran.right
            assert ran.err == "deepum: warning: daemon: it has been silent for 10 s" + ALONE
        finally:
            os.kill(daemon, signal.SIGCONT)
        assert wait_until(lambda: holdings(daemon) == before)
    assert training.run(3, 2, 5).right
